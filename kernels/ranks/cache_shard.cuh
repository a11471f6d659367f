// SPDX-License-Identifier: Apache-2.0
// The part of a paged cache that a rank holds, as a cache of its own.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/ranks/rank_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace assay::ASSAY_TARGET {

/// Tokens are dealt to ranks in turns, `interleave` at a time: token t lies on rank
/// (t / interleave) mod num_ranks.
struct TokenDeal {
  int32_t num_ranks, rank, interleave;

  /// The position in its request of token `index` of the rank.
  int64_t position(int64_t index) const {
    return (index / interleave * num_ranks + rank) * interleave + index % interleave;
  }
  /// How many of the first `tokens` tokens the rank holds.
  int64_t count(int64_t tokens) const {
    const int64_t turn = int64_t{num_ranks} * interleave;
    const int64_t begun = tokens % turn - int64_t{rank} * interleave;
    return tokens / turn * interleave + std::clamp<int64_t>(begun, 0, interleave);
  }
};

/// The elements of K or V in the cache.
struct CacheElements {
  int32_t heads, head_dim, bytes;
};

inline int64_t pages_of(const assay_paged_kv &kv, int64_t tokens) {
  return (tokens + kv.page_size - 1) / kv.page_size;
}

inline int64_t page_at(const assay_paged_kv &kv, int64_t row, int64_t token) {
  const int64_t list = kv.page_indptr == nullptr ? row * kv.page_table_stride : kv.page_indptr[row];
  return kv.page_table[list + token / kv.page_size];
}

/// Pages that lie whole on the rank, by their ids.
inline std::vector<int32_t> own_pages(const assay_paged_kv &kv, const assay_paged_kv &shard,
                                      const TokenDeal &deal) {
  std::vector<int32_t> table(static_cast<size_t>(kv.rows) * shard.max_pages, 0);
  for (int64_t row = 0; row < kv.rows; ++row)
    for (int64_t page = 0; page < pages_of(kv, deal.count(kv.seq_lens[row])); ++page)
      table[row * shard.max_pages + page] =
          static_cast<int32_t>(page_at(kv, row, deal.position(page * kv.page_size)));
  return table;
}

/// Copies tokens one by one into dense pages.
class ShardPacker {
public:
  ShardPacker(const assay_paged_kv &kv, const TokenDeal &deal, const CacheElements &elements)
      : kv_(kv), deal_(deal), elements_(elements),
        row_bytes_(int64_t{elements.head_dim} * elements.bytes) {}

  void pack(assay_paged_kv &shard, RankMemory &memory) {
    std::vector<int32_t> table(static_cast<size_t>(kv_.rows) * shard.max_pages, 0);
    int32_t pages = 0;
    for (int64_t row = 0; row < kv_.rows; ++row)
      for (int64_t page = 0; page < pages_of(kv_, deal_.count(kv_.seq_lens[row])); ++page)
        table[row * shard.max_pages + page] = pages++;
    k_.assign(static_cast<size_t>(int64_t{pages} * kv_.page_size * token_bytes() / 4), -1); // NaN
    v_ = k_;
    for (int64_t row = 0; row < kv_.rows; ++row)
      for (int64_t i = 0; i < deal_.count(kv_.seq_lens[row]); ++i)
        copy_token(row, deal_.position(i),
                   table[row * shard.max_pages + i / kv_.page_size] * int64_t{kv_.page_size} +
                       i % kv_.page_size);
    shard.page_table = memory.words(table, "page table of a rank");
    shard.k = memory.words(k_, "keys of a rank");
    shard.v = memory.words(v_, "values of a rank");
    shard.k_stride_head = shard.v_stride_head = elements_.head_dim;
    shard.k_stride_token = shard.v_stride_token = token_bytes() / elements_.bytes;
    shard.k_stride_page = shard.v_stride_page = shard.k_stride_token * kv_.page_size;
  }

private:
  int64_t token_bytes() const { return elements_.heads * row_bytes_; }

  void copy_token(int64_t row, int64_t token, int64_t slot) {
    const int64_t page = page_at(kv_, row, token), in_page = token % kv_.page_size;
    for (int64_t head = 0; head < elements_.heads; ++head) {
      const auto copy = [&](const void *pool, int64_t at, std::vector<int32_t> &to) {
        std::memcpy(reinterpret_cast<char *>(to.data()) + slot * token_bytes() + head * row_bytes_,
                    static_cast<const char *>(pool) + at * elements_.bytes,
                    static_cast<size_t>(row_bytes_));
      };
      copy(kv_.k,
           page * kv_.k_stride_page + in_page * kv_.k_stride_token + head * kv_.k_stride_head, k_);
      copy(kv_.v,
           page * kv_.v_stride_page + in_page * kv_.v_stride_token + head * kv_.v_stride_head, v_);
    }
  }

  const assay_paged_kv &kv_;
  const TokenDeal &deal_;
  const CacheElements elements_;
  const int64_t row_bytes_;
  std::vector<int32_t> k_, v_;
};

/// The tokens of a rank. Whole pages stay where they are, and others are copied to pages of its own
/// whose dead slots hold NaN.
inline assay_paged_kv shard_of(const assay_paged_kv &kv, const TokenDeal &deal,
                               const CacheElements &elements, RankMemory &memory) {
  assay_paged_kv shard = kv;
  shard.page_indptr = nullptr;
  const int64_t most = deal.count(int64_t{kv.max_pages} * kv.page_size);
  shard.page_table_stride = shard.max_pages = static_cast<int32_t>(pages_of(kv, most));
  std::vector<int32_t> lengths;
  for (int32_t row = 0; row < kv.rows; ++row)
    lengths.push_back(static_cast<int32_t>(deal.count(kv.seq_lens[row])));
  shard.seq_lens = memory.words(lengths, "lengths of a rank");
  if (deal.interleave % kv.page_size == 0)
    shard.page_table = memory.words(own_pages(kv, shard, deal), "page table of a rank");
  else
    ShardPacker(kv, deal, elements).pack(shard, memory);
  return shard;
}

} // namespace assay::ASSAY_TARGET
