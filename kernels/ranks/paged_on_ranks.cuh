// SPDX-License-Identifier: Apache-2.0
// A call of paged attention over a cache that is cut into shards, and an exchange.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/decode/decode_table.cuh"
#include "kernels/ranks/cache_shard.cuh"
#include "kernels/ranks/ranks_call.h"
#include "kernels/ranks/run_exchange.cuh"

#include <algorithm>
#include <vector>

namespace assay::ASSAY_TARGET {

/// One call on several ranks.
class PagedOnRanks {
public:
  PagedOnRanks(const RanksPagedCall &call, simt::Stream &stream)
      : call_(call), stream_(stream), tokens_(call.params), exchange_(exchange()),
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
  /// The rows of q, o and lse as exchanges see them: rows of one stride. Query tokens of a ragged
  /// call follow each other; of other calls the first tokens of all requests do, then the second.
  struct Tokens {
    bool ragged;
    int64_t first;        // number of the first token of a ragged call
    int32_t rows, passes; // rows of a pass; number of exchanges

    explicit Tokens(const assay_paged_params &p)
        : ragged(p.qo_indptr != nullptr), first(ragged ? p.qo_indptr[0] : 0),
          rows(ragged ? p.qo_indptr[p.batch] - p.qo_indptr[0] : p.batch),
          passes(ragged ? 1 : p.q_len) {}
    int64_t row_stride(int64_t batch, int64_t token) const { return ragged ? token : batch; }
    int64_t all() const { return int64_t{rows} * passes; }
  };

  int64_t o_bytes() const { return call_.params.dtype == ASSAY_FIELD61 ? 4 : 2; }
  int64_t kv_bytes() const {
    const assay_dtype kv = call_.params.kv_dtype;
    return kv == ASSAY_E4M3 || kv == ASSAY_E5M2 ? 1 : 2;
  }

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
    e.num_rows = tokens_.rows;
    e.max_rows = std::max(1, tokens_.rows + tokens_.rows % 3); // more than the call has
    e.num_heads = p.num_qo_heads;
    e.head_dim = p.head_dim;
    e.enable_pdl = p.enable_pdl;
    e.out_stride_row = tokens_.row_stride(p.out_stride_batch, p.out_stride_token);
    e.out_stride_head = p.out_stride_head;
    e.lse_stride_row = tokens_.row_stride(p.lse_stride_batch, p.lse_stride_token);
    e.lse_stride_head = p.lse_stride_head;
    e.timeout_ns = 1;
    e.stream = &stream_;
    return e;
  }

  /// v2 over a shard, into scratch of the rank. A sink counts in every state that has it: one rank
  /// gets the sinks.
  assay_status prepare(int rank, assay_paged_params &p) {
    p = call_.params;
    const TokenDeal deal{call_.num_ranks, rank, call_.interleave};
    p.dcp_world_size = deal.num_ranks;
    p.dcp_rank = rank;
    p.dcp_interleave = deal.interleave;
    p.global_lens = call_.params.kv.seq_lens;
    p.kv = shard_of(call_.params.kv, deal,
                    {p.num_kv_heads, p.head_dim, static_cast<int32_t>(kv_bytes())}, memory_);
    if (rank != call_.sink_rank) p.sinks = nullptr;
    p.stream = &stream_;
    p.enable_pdl = 0;
    give_outputs(p);
    ASSAY_RETURN_IF_ERROR(PagedV2::workspace_size(&p, &p.workspace_bytes));
    p.workspace = memory_.scratch(p.workspace_bytes, "workspace of a rank");
    return ASSAY_OK;
  }

  /// Dense: every head of a token, token after token. Of a ragged call token `first` comes first.
  void give_outputs(assay_paged_params &p) {
    const int64_t states = tokens_.all() * p.num_qo_heads;
    p.out_stride_head = p.head_dim;
    p.out_stride_token = p.num_qo_heads * p.out_stride_head;
    p.out_stride_batch = p.q_len * p.out_stride_token;
    p.lse_stride_head = 1;
    p.lse_stride_token = p.num_qo_heads;
    p.lse_stride_batch = p.q_len * p.lse_stride_token;
    auto *o = static_cast<char *>(
        memory_.scratch(std::max<int64_t>(1, states) * p.head_dim * o_bytes(), "o of a rank"));
    auto *lse =
        static_cast<float *>(memory_.scratch(std::max<int64_t>(1, states) * 4, "lse of a rank"));
    p.out = o - tokens_.first * p.out_stride_token * o_bytes();
    p.lse = lse - tokens_.first * p.lse_stride_token;
  }

  static assay_status attend(const assay_paged_params &p) {
    SplitKvCall call{};
    Launch<SplitKvCall> launch = nullptr;
    ASSAY_RETURN_IF_ERROR(PagedV2::build(&p, call));
    ASSAY_RETURN_IF_ERROR(find_paged_attention_v2(call, launch));
    return launch(call, p.stream);
  }

  /// An exchange a pass, on the same windows.
  assay_status merge(int rank, const assay_paged_params &shard) const {
    for (int pass = 0; pass < tokens_.passes; ++pass)
      ASSAY_RETURN_IF_ERROR(merge_pass(rank, shard, tokens_.first + pass));
    return ASSAY_OK;
  }

  assay_status merge_pass(int rank, const assay_paged_params &shard, int64_t token) const {
    const assay_paged_params &p = call_.params;
    assay_exchange_params e = exchange_;
    e.rank = rank;
    e.status = memory_.status(rank);
    e.o_in = static_cast<const char *>(shard.out) + token * shard.out_stride_token * o_bytes();
    e.lse_in = shard.lse + token * shard.lse_stride_token;
    e.o_in_stride_row = tokens_.row_stride(shard.out_stride_batch, shard.out_stride_token);
    e.o_in_stride_head = shard.out_stride_head;
    e.lse_in_stride_row = tokens_.row_stride(shard.lse_stride_batch, shard.lse_stride_token);
    e.lse_in_stride_head = shard.lse_stride_head;
    const int64_t first = HeadRange::of(rank, e.num_ranks, e.num_heads, false).first;
    e.out = static_cast<char *>(p.out) +
            (first * p.out_stride_head + token_offset(token, p.out_stride_token)) * o_bytes();
    if (p.lse != nullptr)
      e.lse = p.lse + first * p.lse_stride_head + token_offset(token, p.lse_stride_token);
    return run_exchange(e);
  }
  /// The stride of a token says something only where there are several.
  int64_t token_offset(int64_t token, int64_t stride) const {
    return call_.params.q_len > 1 || tokens_.ragged ? token * stride : 0;
  }

  const RanksPagedCall &call_;
  simt::Stream &stream_;
  const Tokens tokens_;
  assay_exchange_params exchange_;
  RankMemory memory_;
};

inline assay_status launch_ranks_paged(const RanksPagedCall &call, void *stream) {
  const RankStream on(stream);
  return PagedOnRanks(call, *on).run();
}

} // namespace assay::ASSAY_TARGET
