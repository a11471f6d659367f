// SPDX-License-Identifier: Apache-2.0
// Where a slice of a finished row goes: to O and LSE of the caller, or to an fp32 partial in the
// workspace.
#pragma once

#include "kernels/common/attention_state.cuh"
#include "kernels/common/dtype.cuh"
#include "kernels/common/params.h"

namespace assay::ASSAY_TARGET {

/// Eight consecutive head_dim components of one row.
template <class R>
using SliceOf = AttentionState<R, 8>;

/// The words of another arithmetic, which lie where parameters have a float *.
template <class R>
ASSAY_DEVICE R *words_of(float *p) {
  static_assert(sizeof(R) == sizeof(float));
  return reinterpret_cast<R *>(p);
}

/// A base-2 LSE in the unit of the caller: lse_unit is 1 or ln 2.
template <class R>
ASSAY_DEVICE R lse_in_unit(R lse2, float lse_unit) {
  return lse_unit == 1.0f ? lse2 : R(lse2 * lse_unit);
}

/// Writes components dim .. dim + kDims - 1 of (request, head). `o` is normalised, `lse2` is in
/// base 2. The slice with dim == 0 also writes the LSE. The offsets select a query token.
template <class E, class R, int kDims>
ASSAY_DEVICE void store_final(const AttentionParams &params, int request, int head, int dim,
                              const R (&o)[kDims], R lse2, int64_t o_offset = 0,
                              int64_t lse_offset = 0) {
  using Output = typename arch::Arithmetic<E>::Output;
  Output *row = static_cast<Output *>(params.out) + request * params.out_stride_batch +
                head * params.out_stride_head;
  Pack<Output, kDims>::pack(o).store(row + o_offset + dim);
  if (dim == 0 && params.lse != nullptr)
    arch::global_store(words_of<R>(params.lse) + request * params.lse_stride_batch +
                           head * params.lse_stride_head + lse_offset,
                       lse_in_unit(lse2, params.lse_unit));
}

/// Writes components dim .. dim + kDims - 1 of partial row `row`, which counts through all slots.
/// `o` is normalised.
template <int kHeadDim, class R, int kDims>
ASSAY_DEVICE void store_partial(const PartialParams &partial, uint64_t row, int dim,
                                const R (&o)[kDims], R lse2) {
  Pack<R, kDims>::pack(o).store(words_of<R>(partial.o_accum) + row * kHeadDim + dim);
  if (dim == 0) arch::global_store(words_of<R>(partial.lse_accum) + row, lse2);
}

} // namespace assay::ASSAY_TARGET
