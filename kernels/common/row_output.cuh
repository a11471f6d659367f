// SPDX-License-Identifier: Apache-2.0
// Where a finished row slice goes: the caller's O and LSE, or an fp32 partial in the workspace.
#pragma once

#include "kernels/common/attention_state.cuh"
#include "kernels/common/dtype.cuh"
#include "kernels/common/params.h"

namespace assay::ASSAY_TARGET {

/// Eight consecutive head_dim components of one row.
using RowSlice = AttentionState<float, 8>;

/// Base-2 LSE in the caller's unit (lse_unit is 1 or ln 2).
ASSAY_DEVICE float lse_in_unit(float lse2, float lse_unit) {
  return lse_unit == 1.0f ? lse2 : lse2 * lse_unit;
}

/// Writes normalised components dim .. dim + 7 of (request, head); the slice with dim == 0 also
/// writes the LSE. `o` is normalised, `lse2` in base 2. The offsets select a query token.
template <class E>
ASSAY_DEVICE void store_final(const AttentionParams &params, int request, int head, int dim,
                              const float (&o)[8], float lse2, int64_t o_offset = 0,
                              int64_t lse_offset = 0) {
  E *row =
      static_cast<E *>(params.o) + request * params.o_stride_batch + head * params.o_stride_head;
  Pack8<E>::pack(o).store(row + o_offset + dim);
  if (dim == 0 && params.lse != nullptr)
    arch::global_store(params.lse + request * params.lse_stride_batch +
                           head * params.lse_stride_head + lse_offset,
                       lse_in_unit(lse2, params.lse_unit));
}

/// Writes normalised components dim .. dim + 7 of row `row` of partial slot `slot`.
template <int kHeadDim>
ASSAY_DEVICE void store_partial(const PartialParams &partial, int64_t slot, int row, int dim,
                                const float (&o)[8], float lse2) {
  const int64_t index = slot * partial.rows_per_slot + row;
  Pack8<float>::pack(o).store(partial.o_accum + index * kHeadDim + dim);
  if (dim == 0) arch::global_store(partial.lse_accum + index, lse2);
}

} // namespace assay::ASSAY_TARGET
