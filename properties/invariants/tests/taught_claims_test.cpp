// SPDX-License-Identifier: Apache-2.0
// The claims that paged-attention and flash-decoding courses make of these algorithms, by the names
// they are taught under, on the production kernels (the algebra behind them, at 100 digits, is in
// kernels/common/tests/attention_state_test.cpp; the count of key rows a shared prefix saves is in
// kernels/cascade/tests/cascade_dense_test.cpp).
#include "kernels/abi/kernel_table.h"
#include "properties/run/registry.h"
#include "properties/sut/sut.h"

#include <gtest/gtest.h>

#include <cstring>

namespace assay {
namespace {

/// One request of `len` keys, 8 query heads over 2 kv heads, N(0, 1).
Problem paged(int len, int page_size) {
  Problem p;
  p.seq_lens = {len};
  p.page_size = page_size;
  p.num_kv_heads = 2;
  p.group_size = 4;
  p.q = {Regime::kNormal, 0, 1};
  p.k = {Regime::kNormal, 0, 2};
  p.v = {Regime::kNormal, 0, 3};
  return p;
}

Problem merge(int states) {
  Problem p;
  p.family = Family::kMergeStates;
  p.batch = 5;
  p.num_kv_heads = 3;
  p.num_states = states;
  p.v = {Regime::kNormal, 0, 4};
  p.lse_regime = LseRegime::kSpread;
  return p;
}

void expect_holds(const char *property, const char *kernel_name, const Problem &p) {
  ASSERT_EQ(problem_error(p, full_limits()), "");
  const std::unique_ptr<Sut> sut = make_sut(own_kernel(kernel_name));
  const CheckResult result = find_property(property)->check(p, *sut);
  EXPECT_TRUE(result.passed()) << kernel_name << " " << property << ": " << result.message << "\n"
                               << result.detail;
}

TEST(PagedAttentionLab, matches_dense_block_aligned) {
  Problem p = paged(16, 4);
  p.spare_pages = 4;
  p.num_kv_heads = 1;
  p.placement = Placement::kExplicit;
  p.page_ids = {3, 1, 7, 0};
  expect_holds("within_budget", "paged_attention_v1", p);
}

TEST(PagedAttentionLab, matches_dense_partial_last_block) {
  for (const char *name : {"paged_attention_v1", "paged_attention_v2"})
    expect_holds("within_budget", name, paged(13, 4));
}

TEST(PagedAttentionLab, paging_invariance) {
  Problem p = paged(11, 4);
  p.num_kv_heads = 1;
  p.spare_pages = 4;
  p.placement = Placement::kExplicit;
  p.page_ids = {6, 3, 5};
  for (const char *name : {"paged_attention_v1", "paged_attention_v2"})
    for (const char *property : {"page_remap", "page_permutation", "page_size_invariance"})
      expect_holds(property, name, p);
}

TEST(FlashDecodingLab, one_partition_is_just_attention) {
  Problem p = paged(50, 16);
  p.num_splits = 1;
  expect_holds("within_budget", "paged_attention_v2", p);
}

TEST(FlashDecodingLab, any_partition_count_matches_dense) {
  Problem p = paged(123, 16);
  for (int count : {2, 3, 7, 32, 100}) {
    p.num_splits = count;
    expect_holds("within_budget", "paged_attention_v2", p);
  }
  expect_holds("any_partition_count", "paged_attention_v2", p);
}

TEST(FlashDecodingLab, more_partitions_than_keys) {
  Problem p = paged(5, 16);
  p.num_splits = 64;
  expect_holds("within_budget", "paged_attention_v2", p);
  expect_holds("more_partitions_than_keys", "paged_attention_v2", p);
}

TEST(FlashDecodingLab, merge_is_order_invariant) {
  expect_holds("merge_any_order", "merge_states", merge(9));
}

TEST(FlashDecodingLab, merge_is_hierarchical) {
  expect_holds("merge_any_tree", "merge_states", merge(11));
  Problem two = merge(3);
  two.family = Family::kMergeState;
  expect_holds("merge_associative", "merge_state", two);
}

TEST(FlashDecodingLab, extreme_scores_do_not_overflow) {
  Problem p = paged(96, 16);
  p.k.regime = Regime::kHuge; // |logit| up to 1e5, where a plain exponential overflows at 89
  p.num_splits = 4;
  for (const char *property : {"within_budget", "extreme_scores_finite"})
    expect_holds(property, "paged_attention_v2", p);
}

// 8 requests, a shared prefix of 512 keys, unique suffixes of 64.
TEST(FlashDecodingLab, cascade_prefix_once_equals_flat) {
  Problem p;
  p.family = Family::kCascade;
  p.batch = 8;
  p.q = {Regime::kNormal, 0, 1};
  p.k = {Regime::kNormal, 0, 2};
  p.v = {Regime::kNormal, 0, 3};
  p.levels = {{16, 0, {8}, {512}}, {16, 0, std::vector<int>(8, 1), std::vector<int>(8, 64)}};
  expect_holds("within_budget", "cascade_attention", p);
  expect_holds("cascade_equals_flat", "cascade_attention", p);
}

} // namespace
} // namespace assay
