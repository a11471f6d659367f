// SPDX-License-Identifier: Apache-2.0
// A call of paged attention over a cache that is cut into shards, and an exchange.
#pragma once

#include "kernels/decode/decode_table.cuh"
#include "kernels/ranks/ranks_call.h"
#include "kernels/ranks/run_exchange.cuh"

#include <algorithm>
#include <vector>

namespace assay::ASSAY_TARGET {

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

} // namespace assay::ASSAY_TARGET
