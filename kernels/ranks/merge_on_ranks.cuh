// SPDX-License-Identifier: Apache-2.0
// A call of merge_states as an exchange: a rank a state.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/host/fail.h"
#include "kernels/ranks/ranks_call.h"
#include "kernels/ranks/run_exchange.cuh"

#include <cstring>
#include <vector>

namespace assay::ASSAY_TARGET {

/// An exchange that merges the states of a case of merge_states, seen by one rank.
inline assay_exchange_params exchange_of(const RanksMergeCall &call) {
  const assay_merge_states_params &m = call.params;
  assay_exchange_params p{};
  p.struct_size = sizeof p;
  p.target = m.target;
  p.dtype = m.dtype;
  p.lse_base = m.lse_base;
  p.heads = call.heads;
  p.num_ranks = m.num_states;
  p.num_rows = m.num_rows;
  p.num_heads = m.num_heads;
  p.head_dim = m.head_dim;
  p.max_rows = m.num_rows + m.num_rows % 3; // windows may be made for more rows than a call has
  p.o_in_stride_row = m.num_states * m.o_in_stride_state;
  p.o_in_stride_head = m.o_in_stride_head;
  p.lse_in_stride_row = m.num_states * m.lse_in_stride_state;
  p.lse_in_stride_head = m.lse_in_stride_head;
  p.out_stride_row = m.out_stride_row;
  p.out_stride_head = m.out_stride_head;
  p.lse_stride_row = m.lse_stride_row;
  p.lse_stride_head = m.lse_stride_head;
  p.timeout_ns = 1;
  return p;
}

/// One call on several ranks.
class MergeOnRanks {
public:
  MergeOnRanks(const RanksMergeCall &call, simt::Stream &stream)
      : call_(call),
        size_(call.params.dtype == ASSAY_FP32 || call.params.dtype == ASSAY_FIELD61 ? 4 : 2),
        common_(exchange_of(call)), memory_(stream, common_.num_ranks, window_bytes()) {
    common_.windows = memory_.windows();
    common_.window_bytes = window_bytes();
    common_.stream = &stream;
    for (int r = 0; r < common_.num_ranks; ++r)
      beside_.push_back(dense_output());
  }

  assay_status run() {
    ASSAY_RETURN_IF_ERROR(memory_.run([&](int rank) { return run_rank(rank); }));
    return call_.heads == ASSAY_EXCHANGE_ALL ? compare_ranks() : ASSAY_OK;
  }

private:
  struct Output {
    char *o;
    float *lse;
  };

  uint64_t window_bytes() const {
    uint64_t bytes = 0;
    ExchangeStates::window_size(&common_, &bytes);
    return bytes;
  }
  Output dense_output() {
    const int64_t states = int64_t{common_.num_rows} * common_.num_heads;
    return {static_cast<char *>(memory_.scratch(states * common_.head_dim * size_, "o of a rank")),
            static_cast<float *>(memory_.scratch(states * 4, "lse of a rank"))};
  }

  /// Two exchanges of other states, then that of the case: both halves of the windows have been
  /// used when the last one comes.
  assay_status run_rank(int rank) {
    for (int shift = 2; shift >= 0; --shift) {
      assay_exchange_params p = common_;
      const int state = (rank + shift) % p.num_ranks;
      p.rank = rank;
      p.status = memory_.status(rank);
      p.o_in = static_cast<const char *>(call_.params.o_in) +
               state * call_.params.o_in_stride_state * size_;
      p.lse_in = call_.params.lse_in + state * call_.params.lse_in_stride_state;
      const bool last = shift == 0;
      const bool everywhere = p.heads == ASSAY_EXCHANGE_ALL;
      if (last && (!everywhere || rank == 0))
        write_to_case(p,
                      everywhere ? 0 : HeadRange::of(rank, p.num_ranks, p.num_heads, false).first);
      else
        write_beside(p, rank);
      ASSAY_RETURN_IF_ERROR(run_exchange(p));
    }
    return ASSAY_OK;
  }

  void write_to_case(assay_exchange_params &p, int first_head) const {
    const assay_merge_states_params &m = call_.params;
    p.out = static_cast<char *>(m.out) + first_head * m.out_stride_head * size_;
    p.lse = m.lse == nullptr ? nullptr : m.lse + first_head * m.lse_stride_head;
  }
  void write_beside(assay_exchange_params &p, int rank) const {
    p.out = beside_[rank].o;
    p.lse = beside_[rank].lse;
    p.out_stride_head = p.head_dim;
    p.out_stride_row = int64_t{p.num_heads} * p.head_dim;
    p.lse_stride_head = 1;
    p.lse_stride_row = p.num_heads;
  }

  /// Every rank has the bits of rank 0.
  assay_status compare_ranks() const {
    const assay_merge_states_params &m = call_.params;
    const size_t row_bytes = static_cast<size_t>(m.head_dim * size_);
    for (int rank = 1; rank < common_.num_ranks; ++rank)
      for (int64_t i = 0; i < int64_t{m.num_rows} * m.num_heads; ++i) {
        const int64_t row = i / m.num_heads, head = i % m.num_heads;
        const char *first = static_cast<const char *>(m.out) +
                            (row * m.out_stride_row + head * m.out_stride_head) * size_;
        const float *lse =
            m.lse == nullptr ? nullptr : m.lse + row * m.lse_stride_row + head * m.lse_stride_head;
        if (differs(first, beside_[rank].o + i * row_bytes, row_bytes) ||
            (lse != nullptr && differs(lse, beside_[rank].lse + i, 4)))
          return fail(ASSAY_HAZARD, "rank {} has other bits than rank 0 in row {}, head {}", rank,
                      row, head);
      }
    return ASSAY_OK;
  }
  /// Whether outputs differ in their bits. Values of field61 are handles, which may differ between
  /// ranks for equal numbers, so they are not compared; the case's property checks those of rank 0.
  bool differs(const void *a, const void *b, size_t bytes) const {
    return call_.params.dtype != ASSAY_FIELD61 && std::memcmp(a, b, bytes) != 0;
  }

  const RanksMergeCall &call_;
  const int64_t size_; // bytes of an element
  assay_exchange_params common_;
  RankMemory memory_;
  std::vector<Output> beside_;
};

inline assay_status launch_ranks_merge(const RanksMergeCall &call, void *stream) {
  const RankStream on(stream);
  return MergeOnRanks(call, *on).run();
}

} // namespace assay::ASSAY_TARGET
