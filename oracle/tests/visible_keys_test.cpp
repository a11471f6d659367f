// SPDX-License-Identifier: Apache-2.0
// Which keys a query token sees, and where they and it stand.
#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "oracle/rows/build.h"

namespace assay::oracle::test {
namespace {

TEST(VisibleKeys, EndAtTheTokenAndBeginAtTheWindow) {
  const int32_t lengths[] = {10, 2, 0}, table[] = {0, 1, 2};
  assay_paged_params p = assay_paged_params_init();
  p.batch = 3;
  p.q_len = 4;
  p.kv.seq_lens = lengths;
  p.num_qo_heads = p.num_kv_heads = 1;
  p.kv.page_table = table;
  p.kv.page_table_stride = 1;
  p.kv.rows = 3;
  p.kv.max_pages = 1;
  p.kv.page_size = 16;
  const auto range = [&](size_t request, size_t token) {
    const auto rows = std::get<AttentionRows>(rows_of(p));
    return std::pair(rows.begin[request * 4 + token], rows.end[request * 4 + token]);
  };
  EXPECT_EQ(range(0, 0), std::pair(0, 7));
  EXPECT_EQ(range(0, 3), std::pair(0, 10));
  EXPECT_EQ(range(1, 1), std::pair(0, 0));
  EXPECT_EQ(range(1, 2), std::pair(0, 1));
  EXPECT_EQ(range(2, 3), std::pair(0, 0));
  p.window_left = 2;
  EXPECT_EQ(range(0, 3), std::pair(7, 10));
  EXPECT_EQ(range(0, 0), std::pair(4, 7));
  EXPECT_EQ(range(1, 3), std::pair(0, 2));
}

// Batch strides are there to be ignored.
TEST(VisibleKeys, OfRaggedQueriesEndWhereTheRequestsOwnNumberSays) {
  const int32_t lengths[] = {10, 2, 5}, table[] = {0, 1, 2}, starts[] = {1, 3, 3, 4};
  assay_paged_params p = assay_paged_params_init();
  p.batch = p.kv.rows = 3;
  p.q_len = 4;
  p.qo_indptr = starts;
  p.q_stride_batch = p.out_stride_batch = p.lse_stride_batch = 1000;
  p.q_stride_token = 8;
  p.out_stride_token = 16;
  p.lse_stride_token = 2;
  p.kv.seq_lens = lengths;
  p.num_qo_heads = p.num_kv_heads = 1;
  p.kv.page_table = table;
  p.kv.page_table_stride = p.kv.max_pages = 1;
  p.kv.page_size = 16;
  const auto rows = std::get<AttentionRows>(rows_of(p));
  EXPECT_EQ(rows.list, (std::vector<int32_t>{0, 0, 2}));
  EXPECT_EQ(rows.end, (std::vector<int32_t>{9, 10, 5}));
  EXPECT_EQ(rows.q_at, (std::vector<int64_t>{8, 16, 24}));
  EXPECT_EQ(rows.out.o_at, (std::vector<int64_t>{16, 32, 48}));
  EXPECT_EQ(rows.out.lse_at, (std::vector<int64_t>{2, 4, 6}));
  p.q_len = 1; // the most of one request
  EXPECT_THROW(rows_of(p), std::invalid_argument);
}

/// Keys of one list that are at positions [from, to), counted one by one.
std::vector<int64_t> counted(const Shard &shard, int64_t from, int64_t to) {
  std::vector<int64_t> positions;
  for (int64_t t = from; t < to; ++t)
    if (t / shard.interleave % shard.ranks == shard.rank) positions.push_back(t);
  return positions;
}

TEST(Shards, HoldEveryTokenOnceAndInOrder) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (int interleave : {1, 2, 3, 16})
      for (int rank = 0; rank < ranks; ++rank) {
        const Shard shard{ranks, rank, interleave};
        for (int tokens = 0; tokens < 100; ++tokens) {
          const auto own = counted(shard, 0, tokens);
          ASSERT_EQ(shard.keys(tokens), static_cast<int64_t>(own.size()));
          for (size_t i = 0; i < own.size(); ++i)
            ASSERT_EQ(shard.position(static_cast<int64_t>(i)), own[i]);
        }
      }
}

// Ten tokens, rank 1 of 3 in runs of 2: it holds 2, 3 and 8, 9.
TEST(VisibleKeys, OfAShardAreThoseAtPositionsThatTheTokenSees) {
  const int32_t lengths[] = {4}, table[] = {0}, global[] = {10};
  assay_paged_params p = assay_paged_params_init();
  p.batch = p.kv.rows = 1;
  p.q_len = 3;
  p.window_left = 5;
  p.global_lens = global;
  p.dcp_world_size = 3;
  p.dcp_rank = 1;
  p.dcp_interleave = 2;
  p.kv.seq_lens = lengths;
  p.num_qo_heads = p.num_kv_heads = 1;
  p.kv.page_table = table;
  p.kv.page_table_stride = p.kv.max_pages = 1;
  p.kv.page_size = 16;
  const auto rows = std::get<AttentionRows>(rows_of(p));
  // Positions 7, 8, 9 see 2 .. 7, 3 .. 8, 4 .. 9.
  EXPECT_EQ(rows.begin, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(rows.end, (std::vector<int32_t>{2, 3, 4}));
  EXPECT_EQ(rows.behind, (std::vector<int32_t>{-4, 0, 0}));
  EXPECT_EQ(rows.shard.position(1), 3);
  p.dcp_rank = 0; // has 0, 1, 6, 7: as many, but not of nine tokens
  EXPECT_NO_THROW(rows_of(p));
  const int32_t fewer[] = {7};
  p.global_lens = fewer;
  EXPECT_THROW(rows_of(p), std::invalid_argument);
}

// A request without keys has no pages, the first list begins at 1, and has an entry more.
TEST(PageLists, AreReadWhereTheirRowsBegin) {
  const int32_t lengths[] = {20, 0, 33}, table[] = {7, 3, 99, 99, 99, 99, 1, 4, 9};
  const int32_t lists[] = {99, 7, 3, 99, 1, 4, 9}, starts[] = {1, 4, 4, 7}, early[] = {1, 2, 4, 7};
  assay_paged_params p = assay_paged_params_init();
  p.batch = p.kv.rows = 3;
  p.q_len = p.num_qo_heads = p.num_kv_heads = 1;
  p.kv.seq_lens = lengths;
  p.kv.page_table = table;
  p.kv.page_table_stride = p.kv.max_pages = 3;
  p.kv.page_size = 16;
  p.kv.k_stride_page = 1000;
  p.kv.v_stride_page = 10;
  const auto places = [&] {
    std::vector<std::tuple<int32_t, int32_t, int64_t, int64_t>> out;
    const auto rows = std::get<AttentionRows>(rows_of(p));
    for (const KeyRun &run : rows.runs)
      out.emplace_back(run.position, run.count, run.k_at, run.v_at);
    return out;
  };
  const auto of_table = places();
  ASSERT_EQ(of_table.size(), 5u);
  p.kv.page_table = lists;
  p.kv.page_indptr = starts;
  p.kv.page_table_stride = 0;
  EXPECT_EQ(places(), of_table);
  p.kv.page_indptr = early;
  EXPECT_THROW(places(), std::invalid_argument);
  p.kv.page_indptr = starts;
  p.kv.page_table_stride_head = 7;
  EXPECT_THROW(places(), std::invalid_argument);
}

} // namespace
} // namespace assay::oracle::test
