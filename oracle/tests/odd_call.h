// SPDX-License-Identifier: Apache-2.0
// Calls for rows that share keys, such as random ones hardly are.
#pragma once

#include "oracle/tests/random_call.h"

namespace assay::oracle::test {

inline constexpr int kOddCalls = 4;

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
  return call;
}

} // namespace assay::oracle::test
