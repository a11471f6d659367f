// SPDX-License-Identifier: Apache-2.0
// Cells of cascade attention: batches whose requests share prefixes, as levels of segments.
#pragma once

#include "kernels/bench/cells/cells.h"

namespace assay::bench {

/// `segments` of `tokens` keys each, one after the other serving equal numbers of requests.
struct CascadeLevel {
  int segments, tokens;
};

struct CascadeCell {
  std::string name;
  int batch;
  int num_qo_heads, num_kv_heads, head_dim, page_size;
  std::vector<CascadeLevel> levels;
  KvDtype kv_dtype = KvDtype::kBf16; // fp8: of tree_attention and paged_attention_v2
};

/// Shared prefixes with unique suffixes (bf16 and e4m3), prefixes alone, groups, beams and trees.
const std::vector<CascadeCell> &standard_cascade_cells();

/// K and V bytes of all segments: what a call must read once.
uint64_t kv_bytes(const CascadeCell &cell);

/// Multiplications and additions of Q.K and P.V.
uint64_t flops(const CascadeCell &cell);

} // namespace assay::bench
