// SPDX-License-Identifier: Apache-2.0
// Calls for rows that share keys, such as random ones hardly are.
#pragma once

#include "oracle/tests/random_call.h"

namespace assay::oracle::test {

inline constexpr int kOddCalls = 5;

/// `which` of them.
inline std::unique_ptr<RandomCall> odd_call(int which, CallMemory &memory) {
  Options o;
  o.group = 4;
  o.kv_heads = 1;
  o.tile = 16;
  o.splits = 2;
  o.page = 128;
  o.lengths = {80};
  if (which == 0) { // last keys that stand behind their row
    o.alibi = true;
    o.lengths = {300, 64};
  }
  if (which == 2) o.lengths = {1100};
  if (which == 3) { // states of more tiles than a warp has lanes
    o.splits = 1;
    o.lengths = {1100, 700};
  }
  if (which == 4) o.kv_dtype = ASSAY_E4M3;
  auto call = std::make_unique<RandomCall>(o, 29u + static_cast<unsigned>(which), memory);
  AttentionRows &rows = call->rows;
  if (which == 0) rows.behind = {700, 3};
  // All keys alike: their splits tie, and one has more of them.
  if (which == 1) rows.pools[0].k_stride_token = 0;
  if (which == 2) { // one key, of which nothing is known for a head that it points along
    auto *k = static_cast<uint16_t *>(const_cast<void *>(rows.pools[0].k)) + rows.runs[0].k_at;
    for (int i = 0; i < o.head_dim; ++i)
      k[i] = static_cast<uint16_t>(k[i] + (26 << 7));
  }
  if (which == 4) { // one key, of value 0, has all of a head's weight but 2^-50 or less
    const KeyRun &run = rows.runs[0];
    auto *k = static_cast<unsigned char *>(const_cast<void *>(rows.pools[0].k));
    auto *v = static_cast<unsigned char *>(const_cast<void *>(rows.pools[0].v));
    for (int i = 0; i < o.head_dim; ++i) {
      const float q = load_element(o.dtype, rows.q, rows.q_at[0] + i);
      store_element(o.kv_dtype, k, run.k_at + i, q < 0.0f ? -5.0f : 5.0f);
      store_element(o.kv_dtype, v, run.v_at + i, 0.0f);
    }
    call->model.arithmetic.kv_format = ASSAY_FORMAT_BF16;
    call->fill();
  }
  return call;
}

} // namespace assay::oracle::test
