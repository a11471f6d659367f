// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/merge_layout.h"

namespace assay::bench {
namespace {

uint64_t o_bytes(const MergeCell &cell) {
  return uint64_t(cell.rows) * cell.num_heads * cell.head_dim * sizeof(uint16_t);
}

} // namespace

MergeLayout::MergeLayout(const MergeCell &cell) : cell_(cell) {}

uint64_t MergeLayout::out_bytes() const { return written_bytes(cell_) + 4 * kBandBytes; }

TimedMerge MergeLayout::call(assay_target target, const void *in, void *out) const {
  const uint64_t state_bytes = o_bytes(cell_); // O of one state of every row
  const int64_t row = int64_t{cell_.num_heads} * cell_.head_dim;
  const bool pairs = cell_.op == MergeOp::kState;
  TimedMerge call{};
  call.kernel = name_of(cell_.op);
  call.target = target;
  call.dtype = ASSAY_BF16;
  call.lse_base = ASSAY_LSE_BASE_E;
  call.rows = cell_.rows;
  call.states = cell_.states;
  call.num_heads = cell_.num_heads;
  call.head_dim = cell_.head_dim;
  call.o_in = in;
  call.lse_in = reinterpret_cast<const float *>(static_cast<const std::byte *>(in) +
                                                state_bytes * (pairs ? 1 : cell_.states));
  const auto pair = static_cast<int64_t>(written_bytes(cell_)); // O and LSE of one state
  call.o_in_stride_row = pairs ? row : row * cell_.states;
  call.o_in_stride_state = pairs ? pair / int64_t{sizeof(uint16_t)} : row;
  call.lse_in_stride_row = pairs ? cell_.num_heads : int64_t{cell_.num_heads} * cell_.states;
  call.lse_in_stride_state = pairs ? pair / int64_t{sizeof(float)} : cell_.num_heads;
  call.o = static_cast<std::byte *>(out) + kBandBytes;
  call.lse =
      reinterpret_cast<float *>(static_cast<std::byte *>(call.o) + state_bytes + 2 * kBandBytes);
  return call;
}

} // namespace assay::bench
