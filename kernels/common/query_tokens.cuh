// SPDX-License-Identifier: Apache-2.0
// Which query tokens a request has: q_len, or in a ragged call what qo_indptr says.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/common/params.h"
#include "kernels/common/token_positions.cuh"

namespace assay::ASSAY_TARGET {

/// `first` counts the tokens in front of the request in a ragged call, whose rows are found by that
/// number alone. Elsewhere the batch stride finds the request, and first is 0.
struct QueryTokens {
  int first, count;
};

ASSAY_DEVICE QueryTokens query_tokens(const FeatureParams &features, int request) {
  if (features.qo_indptr == nullptr) return {0, features.q_len};
  const int first = arch::global_load(features.qo_indptr + request);
  return {first, arch::global_load(features.qo_indptr + request + 1) - first};
}

/// Positions that some query token of a request sees, 0: all. A plan has those that q_len tokens
/// would.
ASSAY_DEVICE int visible_span(const FeatureParams &features, int request) {
  if (features.qo_indptr == nullptr || features.window_keys == 0) return features.span;
  const int count = query_tokens(features, request).count;
  return count > 0 ? features.window_keys + count - 1 : features.window_keys;
}

/// The first key in the cache that some query token of a request may see.
ASSAY_DEVICE int first_seen(const FeatureParams &features, int request, int seq_len) {
  const int span = visible_span(features, request);
  if (span == 0) return 0;
  return keys_before(features.shard, request_tokens(features.shard, request, seq_len) - span);
}

/// Query rows of a (request, kv head).
template <bool kFeatures>
ASSAY_DEVICE int query_rows(const FeatureParams &features, int request, int gqa_group_size) {
  if constexpr (kFeatures)
    if (features.qo_indptr != nullptr)
      return query_tokens(features, request).count * gqa_group_size;
  return features.query_rows;
}

} // namespace assay::ASSAY_TARGET
