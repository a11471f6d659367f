// SPDX-License-Identifier: Apache-2.0
// What runs the calls of ranks_call.h: on the executor, which has several devices.
#pragma once

#include "kernels/host/fail.h"
#include "kernels/host/find.h"
#include "kernels/ranks/ranks_call.h"

#if ASSAY_IS_CUDA

namespace assay::n_cuda {

template <class Call>
assay_status find_ranks(const Call &, Launch<Call> &) {
  return fail(ASSAY_UNSUPPORTED, "ranks run side by side on the executor only");
}

} // namespace assay::n_cuda

#else

#include "kernels/decode/decode_table.cuh"
#include "kernels/exchange/exchange_table.cuh"
#include "kernels/ranks/rank_memory.h"

#include <cstring>
#include <optional>

namespace assay::ASSAY_TARGET {

/// The executor's stream of a call that may have none.
class RankStream {
public:
  explicit RankStream(void *stream) : stream_(static_cast<simt::Stream *>(stream)) {
    if (stream_ != nullptr) return;
    own_.emplace();
    own_->strict_global = false;
    stream_ = &*own_;
  }
  simt::Stream &operator*() const { return *stream_; }

private:
  std::optional<simt::Stream> own_;
  simt::Stream *stream_;
};

inline assay_status run_exchange(const assay_exchange_params &params) {
  ExchangeCall call{};
  Launch<ExchangeCall> launch = nullptr;
  ASSAY_RETURN_IF_ERROR(ExchangeStates::build(&params, call));
  ASSAY_RETURN_IF_ERROR(find_exchange_states(call, launch));
  return call.empty ? ASSAY_OK : launch(call, params.stream);
}

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
  p.max_rows = m.num_rows;
  p.o_in_stride_row = m.num_states * m.o_in_stride_state;
  p.o_in_stride_head = m.o_in_stride_head;
  p.lse_in_stride_row = m.num_states * m.lse_in_stride_state;
  p.lse_in_stride_head = m.lse_in_stride_head;
  p.o_stride_row = m.o_stride_row;
  p.o_stride_head = m.o_stride_head;
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
    p.o = static_cast<char *>(m.o) + first_head * m.o_stride_head * size_;
    p.lse = m.lse == nullptr ? nullptr : m.lse + first_head * m.lse_stride_head;
  }
  void write_beside(assay_exchange_params &p, int rank) const {
    p.o = beside_[rank].o;
    p.lse = beside_[rank].lse;
    p.o_stride_head = p.head_dim;
    p.o_stride_row = int64_t{p.num_heads} * p.head_dim;
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
        const char *first = static_cast<const char *>(m.o) +
                            (row * m.o_stride_row + head * m.o_stride_head) * size_;
        const float *lse =
            m.lse == nullptr ? nullptr : m.lse + row * m.lse_stride_row + head * m.lse_stride_head;
        if (differs(first, beside_[rank].o + i * row_bytes, row_bytes) ||
            (lse != nullptr && differs(lse, beside_[rank].lse + i, 4)))
          return fail(ASSAY_HAZARD, "rank {} has other bits than rank 0 in row {}, head {}", rank,
                      row, head);
      }
    return ASSAY_OK;
  }
  /// Exact numbers are the same behind other handles; what they are, the case says of rank 0.
  bool differs(const void *a, const void *b, size_t bytes) const {
    return call_.params.dtype != ASSAY_FIELD61 && std::memcmp(a, b, bytes) != 0;
  }

  const RanksMergeCall &call_;
  const int64_t size_; // of an element
  assay_exchange_params common_;
  RankMemory memory_;
  std::vector<Output> beside_;
};

inline assay_status launch_ranks_merge(const RanksMergeCall &call, void *stream) {
  const RankStream on(stream);
  return MergeOnRanks(call, *on).run();
}

/// One rank's part of a paged call: every num_ranks-th page of every request.
struct Shard {
  std::vector<int32_t> pages, lengths;
  int32_t max_pages = 0;

  static Shard of(const assay_paged_kv &kv, int rank, int num_ranks) {
    Shard shard;
    shard.max_pages = (kv.max_pages + num_ranks - 1) / num_ranks;
    shard.pages.assign(static_cast<size_t>(kv.rows) * shard.max_pages, 0);
    for (int64_t row = 0; row < kv.rows; ++row) {
      int32_t tokens = 0;
      const int32_t pages = (kv.seq_lens[row] + kv.page_size - 1) / kv.page_size;
      for (int32_t page = rank, n = 0; page < pages; page += num_ranks, ++n) {
        shard.pages[row * shard.max_pages + n] = kv.page_table[row * kv.page_table_stride + page];
        tokens += std::min(kv.page_size, kv.seq_lens[row] - page * kv.page_size);
      }
      shard.lengths.push_back(tokens);
    }
    return shard;
  }
};

/// One call on several ranks.
class PagedOnRanks {
public:
  PagedOnRanks(const RanksPagedCall &call, simt::Stream &stream)
      : call_(call), stream_(stream), exchange_(exchange()),
        memory_(stream, call.num_ranks, window_bytes()) {
    exchange_.windows = memory_.windows();
    exchange_.window_bytes = window_bytes();
  }
  assay_status run() {
    std::vector<assay_paged_params> ranks;
    for (int r = 0; r < call_.num_ranks; ++r) {
      ranks.push_back({});
      ASSAY_RETURN_IF_ERROR(prepare(r, ranks.back()));
    }
    return memory_.run([&](int rank) {
      ASSAY_RETURN_IF_ERROR(attend(ranks[rank]));
      return merge(rank, ranks[rank]);
    });
  }

private:
  uint64_t window_bytes() const {
    uint64_t bytes = 0;
    ExchangeStates::window_size(&exchange_, &bytes);
    return bytes;
  }

  assay_exchange_params exchange() const {
    const assay_paged_params &p = call_.params;
    assay_exchange_params e{};
    e.struct_size = sizeof e;
    e.target = p.target;
    e.dtype = p.dtype;
    e.lse_base = p.lse_base;
    e.heads = ASSAY_EXCHANGE_SCATTER;
    e.num_ranks = call_.num_ranks;
    e.num_rows = e.max_rows = p.batch;
    e.num_heads = p.num_qo_heads;
    e.head_dim = p.head_dim;
    e.early_start = p.early_start;
    e.o_stride_row = p.o_stride_batch;
    e.o_stride_head = p.o_stride_head;
    e.lse_stride_row = p.lse_stride_batch;
    e.lse_stride_head = p.lse_stride_head;
    e.timeout_ns = 1;
    e.stream = &stream_;
    return e;
  }

  /// v2 over a shard, into scratch of the rank.
  assay_status prepare(int rank, assay_paged_params &p) {
    p = call_.params;
    const Shard shard = Shard::of(p.kv, rank, call_.num_ranks);
    p.stream = &stream_;
    p.early_start = 0;
    p.kv.page_table = memory_.words(shard.pages, "page table of a rank");
    p.kv.seq_lens = memory_.words(shard.lengths, "lengths of a rank");
    p.kv.page_table_stride = p.kv.max_pages = shard.max_pages;
    const int64_t states = int64_t{p.batch} * p.num_qo_heads;
    const int64_t element = p.dtype == ASSAY_FIELD61 ? 4 : 2;
    p.o = memory_.scratch(states * p.head_dim * element, "o of a rank");
    p.lse = static_cast<float *>(memory_.scratch(states * 4, "lse of a rank"));
    p.o_stride_head = p.head_dim;
    p.o_stride_batch = int64_t{p.num_qo_heads} * p.head_dim;
    p.lse_stride_head = 1;
    p.lse_stride_batch = p.num_qo_heads;
    ASSAY_RETURN_IF_ERROR(PagedV2::workspace_size(&p, &p.workspace_bytes));
    p.workspace = memory_.scratch(p.workspace_bytes, "workspace of a rank");
    return ASSAY_OK;
  }

  static assay_status attend(const assay_paged_params &p) {
    SplitKvCall call{};
    Launch<SplitKvCall> launch = nullptr;
    ASSAY_RETURN_IF_ERROR(PagedV2::build(&p, call));
    ASSAY_RETURN_IF_ERROR(find_paged_attention_v2(call, launch));
    return launch(call, p.stream);
  }

  assay_status merge(int rank, const assay_paged_params &shard) const {
    const assay_paged_params &p = call_.params;
    assay_exchange_params e = exchange_;
    e.rank = rank;
    e.status = memory_.status(rank);
    e.o_in = shard.o;
    e.lse_in = shard.lse;
    e.o_in_stride_row = shard.o_stride_batch;
    e.o_in_stride_head = shard.o_stride_head;
    e.lse_in_stride_row = shard.lse_stride_batch;
    e.lse_in_stride_head = shard.lse_stride_head;
    const int first = HeadRange::of(rank, e.num_ranks, e.num_heads, false).first;
    const int64_t element = p.dtype == ASSAY_FIELD61 ? 4 : 2;
    e.o = static_cast<char *>(p.o) + first * p.o_stride_head * element;
    e.lse = p.lse == nullptr ? nullptr : p.lse + first * p.lse_stride_head;
    return run_exchange(e);
  }

  const RanksPagedCall &call_;
  simt::Stream &stream_;
  assay_exchange_params exchange_;
  RankMemory memory_;
};

inline assay_status launch_ranks_paged(const RanksPagedCall &call, void *stream) {
  const RankStream on(stream);
  return PagedOnRanks(call, *on).run();
}

inline assay_status find_ranks(const RanksMergeCall &, Launch<RanksMergeCall> &launch) {
  launch = &launch_ranks_merge;
  return ASSAY_OK;
}
inline assay_status find_ranks(const RanksPagedCall &call, Launch<RanksPagedCall> &launch) {
  SplitKvCall v2{};
  Launch<SplitKvCall> attend = nullptr;
  ASSAY_RETURN_IF_ERROR(build_paged_call(&call.params, v2.paged));
  ASSAY_RETURN_IF_ERROR(build_paged_split(v2.paged.shape, call.params.num_splits, v2.split));
  ASSAY_RETURN_IF_ERROR(find_paged_attention_v2(v2, attend));
  launch = &launch_ranks_paged;
  return ASSAY_OK;
}

} // namespace assay::ASSAY_TARGET

#endif

namespace assay::ASSAY_TARGET {

inline assay_status find_exchange_scatter(const RanksMergeCall &call,
                                          Launch<RanksMergeCall> &launch) {
  return find_ranks(call, launch);
}
inline assay_status find_exchange_all(const RanksMergeCall &call, Launch<RanksMergeCall> &launch) {
  return find_ranks(call, launch);
}
inline assay_status find_sharded_attention(const RanksPagedCall &call,
                                           Launch<RanksPagedCall> &launch) {
  return find_ranks(call, launch);
}

} // namespace assay::ASSAY_TARGET
