// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "oracle/rows/build.h"

namespace assay::oracle {
namespace {

/// What the parameter structs of merges name alike.
template <class Params>
MergeRows output_side(const Params &p) {
  MergeRows rows;
  rows.out.dtype = p.dtype;
  rows.out.lse_base = p.lse_base;
  rows.out.dims = p.head_dim;
  rows.out.heads = p.num_heads;
  rows.out.out_stride_head = p.out_stride_head;
  rows.out.lse_stride_head = p.lse_stride_head;
  for (int64_t row = 0; row < p.num_rows; ++row) {
    rows.out.o_at.push_back(row * p.out_stride_row);
    rows.out.lse_at.push_back(row * p.lse_stride_row);
  }
  rows.first.push_back(0);
  return rows;
}

} // namespace

CallRows rows_of(const assay_merge_state_params &p, const Memory &) {
  MergeRows rows = output_side(p);
  rows.arrays = {{p.o_a, p.lse_a, p.o_a_stride_head, p.lse_a_stride_head},
                 {p.o_b, p.lse_b, p.o_b_stride_head, p.lse_b_stride_head}};
  for (int64_t row = 0; row < p.num_rows; ++row) {
    rows.states.push_back({0, row * p.o_a_stride_row, row * p.lse_a_stride_row});
    rows.states.push_back({1, row * p.o_b_stride_row, row * p.lse_b_stride_row});
    rows.first.push_back(static_cast<int64_t>(rows.states.size()));
  }
  return rows;
}

CallRows rows_of(const assay_merge_states_params &p, const Memory &memory) {
  MergeRows rows = output_side(p);
  rows.arrays = {{p.o_in, p.lse_in, p.o_in_stride_head, p.lse_in_stride_head}};
  const std::vector<int32_t> indptr =
      p.indptr ? memory.array(p.indptr, static_cast<size_t>(p.num_rows) + 1)
               : std::vector<int32_t>();
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const auto at = static_cast<size_t>(row);
    const int64_t first = indptr.empty() ? row * p.num_states : indptr[at];
    const int64_t last = indptr.empty() ? first + p.num_states : indptr[at + 1];
    for (int64_t s = first; s < last; ++s)
      rows.states.push_back({0, s * p.o_in_stride_state, s * p.lse_in_stride_state});
    rows.first.push_back(static_cast<int64_t>(rows.states.size()));
  }
  return rows;
}

CallRows rows_of(assay_family family, const void *params, const Memory &memory) {
  switch (family) {
  case ASSAY_FAMILY_PAGED:
    return rows_of(*static_cast<const assay_paged_params *>(params), memory);
  case ASSAY_FAMILY_CASCADE:
    return rows_of(*static_cast<const assay_cascade_params *>(params), memory);
  case ASSAY_FAMILY_MERGE_STATE:
    return rows_of(*static_cast<const assay_merge_state_params *>(params), memory);
  case ASSAY_FAMILY_MERGE_STATES:
    return rows_of(*static_cast<const assay_merge_states_params *>(params), memory);
  default:
    throw std::invalid_argument("oracle: no such family");
  }
}

} // namespace assay::oracle
