// SPDX-License-Identifier: Apache-2.0
#include "properties/case/directed.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "properties/case/case_text.h"
#include "properties/case/problem_gen.h"
#include "properties/case/query_rows.h"
#include "properties/case/serving.h"
#include "properties/tests/families.h"

namespace assay {
namespace {

void expect_text(const Problem &p) {
  ASSERT_EQ(problem_error(p, full_limits()), "") << format_problem(p);
  Case c;
  c.problem = p;
  const auto again = parse_case(format_case(c));
  ASSERT_TRUE(std::holds_alternative<Case>(again)) << std::get<CaseError>(again).message;
  EXPECT_TRUE(std::get<Case>(again).problem == p) << format_problem(p);
}

// A finding has to fit into a file.
TEST(Directed, EveryCaseIsText) {
  for (Family family : kFamilies)
    for (const Limits &limits : {fuzz_limits(), check_limits(), large_limits()})
      for (uint64_t seed = 0; seed < 200; ++seed)
        for (Problem (*made)(Problem, const Limits &, uint64_t) : {aimed, directed})
          expect_text(made(draw_problem(limits, family, seed), limits, seed));
  for (Family family : kFamilies)
    for (Problem (*large)(Problem) :
         {with_most_requests, with_large_pages, with_longest_row, with_most_heads})
      expect_text(large(draw_problem(check_limits(), family, 3)));
}

Problem serving(Family family, int kind, uint64_t seed) {
  Rng rng(seed);
  return serving_case(draw_problem(check_limits(), family, seed), kind, rng);
}

TEST(Serving, EveryCaseIsText) {
  for (Family family : kFamilies)
    for (int kind : serving_kinds(family, kServingAll))
      for (uint64_t seed = 0; seed < 10; ++seed)
        expect_text(serving(family, kind, seed));
}

TEST(Serving, ReachesEverySizeAtEverySeed) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    bool eight_kv_heads = false;
    int batch = 0, keys = 0, splits = 0, window = 0, page = 0, states = 0, wide_states = 0;
    for (Family family : kFamilies)
      for (int kind : serving_kinds(family, kServingAll)) {
        const Problem p = serving(family, kind, seed);
        batch = std::max(batch, is_attention(p) ? p.batch : 0);
        for (int len : p.seq_lens)
          keys = std::max(keys, len);
        splits = std::max(splits, p.num_splits);
        window = std::max(window, window_keys(p));
        page = std::max(page, p.page_size);
        if (is_merge(p)) states = std::max(states, p.num_states);
        if (is_merge(p) && p.head_dim > 128) wide_states = std::max(wide_states, p.num_states);
        if (p.num_kv_heads == 8) eight_kv_heads = true;
      }
    EXPECT_GE(batch, 255);
    EXPECT_GT(keys, 1 << 16);
    EXPECT_TRUE(eight_kv_heads);
    EXPECT_EQ(splits, 1'024);
    EXPECT_GE(window, 1'024);
    EXPECT_EQ(page, 1'024);
    EXPECT_EQ(states, 1'024);
    EXPECT_GT(wide_states, 256);
  }
}

// What shows a kernel whose cuts follow its batch: 16 heads, splits of its own choice, rows of more
// than a chunk beside shorter ones, a window, several query tokens.
TEST(Serving, BatchesOfWhichBitsAreComparedLeaveTheSplitsToTheKernel) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    int above_nine = 0, long_rows = 0, windows = 0, ragged = 0;
    for (int kind : serving_kinds(Family::kPaged, kServingBits)) {
      const Problem p = serving(Family::kPaged, kind, seed);
      EXPECT_EQ(p.num_qo_heads(), 16);
      EXPECT_EQ(p.num_splits, 0);
      EXPECT_EQ(p.dtype, Dtype::kFp16);
      above_nine += p.batch >= 9 && *std::max_element(p.seq_lens.begin(), p.seq_lens.end()) > 128;
      long_rows += *std::max_element(p.seq_lens.begin(), p.seq_lens.end()) > 3'800;
      windows += window_keys(p) > 0;
      ragged += !p.query_tokens.empty();
    }
    EXPECT_GE(above_nine, 5);
    EXPECT_GE(long_rows, 1);
    EXPECT_GE(windows, 1);
    EXPECT_GE(ragged, 1);
  }
}

int times(Family family, const std::function<bool(const Problem &)> &is) {
  int count = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed)
    count += is(directed(draw_problem(check_limits(), family, seed), check_limits(), seed));
  return count;
}

// Whole tiles of a shard, of which the first query token does not see all.
bool ends_with_hidden_tile(const Problem &p) {
  if (p.foreign_tokens.empty() || p.dcp_world_size < 2) return false;
  for (int row = 0; row < query_rows(p); ++row) {
    const int keys = p.seq_lens[query_row(p, row).request];
    if (keys > 0 && keys % 64 == 0 && visible_range(p, row).end < keys) return true;
  }
  return false;
}

// What a run is to have met, by number: of 2,000 draws.
TEST(Directed, ShowsWhatItIsFor) {
  using P = const Problem &;
  EXPECT_GE(times(Family::kPaged, [](P p) { return p.batch > 256; }), 2);
  EXPECT_GE(times(Family::kPaged, [](P p) { return p.num_kv_heads > 64; }), 5);
  EXPECT_GE(times(Family::kPaged, [](P p) { return p.group_size > 64; }), 5);
  EXPECT_GE(times(Family::kPaged, [](P p) { return p.num_splits > 32 && p.seq_lens[0] > 32; }), 20);
  EXPECT_GE(times(Family::kPaged, [](P p) { return p.batch > 4 && p.num_splits == 0; }), 50);
  EXPECT_GE(times(Family::kPaged, [](P p) { return p.k.regime == Regime::kGaps; }), 50);
  const auto few = [](P p) { return p.num_splits == 0 && p.batch * p.num_kv_heads <= 4; };
  EXPECT_GE(times(Family::kPaged,
                  [&](P p) {
                    return few(p) && is_fp8(p) && p.group_size > 8 && p.q.regime == Regime::kWide;
                  }),
            2);
  EXPECT_GE(times(Family::kPaged,
                  [](P p) {
                    return is_fp8(p) && p.q.regime == Regime::kPeaked &&
                           p.k.regime == Regime::kOffPeak;
                  }),
            5);
  EXPECT_GE(times(Family::kPaged, [](P p) { return p.q_len > 1 && window_keys(p) > 0; }), 50);
  EXPECT_GE(times(Family::kPaged, ends_with_hidden_tile), 40);
  EXPECT_GE(times(Family::kMergeState, [](P p) { return p.head_dim > 256; }), 200);
  EXPECT_GE(times(Family::kMergeStates, [](P p) { return p.head_dim > 256; }), 100);
  EXPECT_GT(with_most_requests(draw_problem(check_limits(), Family::kPaged, 1)).batch, 1 << 16);
  EXPECT_GT(with_most_requests(draw_problem(check_limits(), Family::kMergeState, 1)).num_kv_heads,
            128);
  EXPECT_GT(with_large_pages(draw_problem(check_limits(), Family::kCascade, 1)).levels[0].page_size,
            512);
  EXPECT_GT(with_longest_row(draw_problem(check_limits(), Family::kPaged, 1)).seq_lens[0], 50'000);
}

} // namespace
} // namespace assay
