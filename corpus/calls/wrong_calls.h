// SPDX-License-Identifier: Apache-2.0
// The wrong calls by what their mistakes have in common. Each takes a copy of the parameters.
#pragma once

#include <cstdint>

#include "kernels/abi/plugin.h"

namespace assay::wrong_calls {

template <class T>
T *rounded_down(T *p, uintptr_t bytes) {
  return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) / bytes * bytes);
}

// Offsets and strides (layout.cpp).
assay_status query_down_to_32(assay_paged_params p);
assay_status keys_down_to_64(assay_paged_params p);
assay_status values_down_to_128(assay_paged_params p);
assay_status table_down_to_16(assay_paged_params p);
assay_status lengths_down_to_8(assay_paged_params p);
assay_status scales_down_to_16(assay_paged_params p);
assay_status lse_down_to_64(assay_cascade_params p);
assay_status segments_down_to_32(assay_cascade_params p);
assay_status states_down_to_64(assay_merge_states_params p);
assay_status query_rows_outermost(assay_paged_params p);
assay_status output_rows_outermost(assay_paged_params p);
assay_status lse_rows_outermost(assay_paged_params p);

// What earlier calls left behind (memory.cpp).
assay_status scale_grows_at_call_300(assay_paged_params p);
assay_status every_256th_call_left_out(assay_paged_params p);
assay_status scale_kept_by_head_dim(assay_paged_params p);
assay_status query_strides_kept_by_shape(assay_paged_params p);
assay_status key_strides_kept_by_page_size(assay_paged_params p);
assay_status window_kept_by_batch(assay_paged_params p);
assay_status plan_of_latest(assay_paged_params p);
assay_status latest_plan_used(assay_paged_params p);
assay_status left_out_behind_refusal(assay_paged_params p);
assay_status base_kept_by_dtype(assay_cascade_params p);
assay_status strides_kept_by_states(assay_merge_states_params p);

/// Where a kernel writes the order of keys that it declares.
struct Order {
  assay_key_tile *tiles;
  int64_t capacity;
  int64_t *first;
};

// Right calls whose declared order of keys is another (orders.cpp).
assay_status order_of_other_teams(assay_paged_params p, const Order &out);
assay_status order_of_one_split_more(assay_paged_params p, const Order &out);
assay_status order_of_reversed_batch(assay_paged_params p, const Order &out);
assay_status order_of_requests_alone(assay_paged_params p, const Order &out);
assay_status order_of_nothing_shared(assay_paged_params p, const Order &out);
assay_status order_of_whole_segments(assay_cascade_params p, const Order &out);
assay_status order_of_segments_in_one_more(assay_cascade_params p, const Order &out);
assay_status order_of_single_heads(assay_cascade_params p, const Order &out);

// Sizes (sizes.cpp).
assay_status splits_follow_batch(assay_paged_params p);
assay_status teams_follow_heads(assay_paged_params p);
assay_status keys_beyond_16384_lost(assay_paged_params p);
assay_status keys_beyond_8192_lost(assay_paged_params p);
assay_status long_window_one_key_wider(assay_paged_params p);
assay_status window_of_tokens_one_key_narrower(assay_paged_params p);
assay_status pages_of_256_overlap(assay_paged_params p);
assay_status keys_of_splits_beyond_256_lost(assay_paged_params p);
assay_status later_requests_scaled(assay_paged_params p);
assay_status states_beyond_256_lost(assay_merge_states_params p);

} // namespace assay::wrong_calls
