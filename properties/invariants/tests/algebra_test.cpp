// SPDX-License-Identifier: Apache-2.0
// The exact arithmetic on our kernels: one function whatever the kernel, the split and the order of
// work, at any length; and what dead or foreign words do to it.
#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "properties/call/params.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/field61.h"
#include "properties/relate/field_call.h"
#include "properties/relate/outcome.h"
#include "properties/run/requirements.h"

namespace assay {
namespace {

Problem paged(std::vector<int> lens, int group) {
  Problem p;
  p.batch = static_cast<int>(lens.size());
  p.seq_lens = std::move(lens);
  p.page_size = 16;
  p.num_kv_heads = 2;
  p.group_size = group;
  p.placement = Placement::kShuffled;
  p.num_splits = 8;
  p.scale = ScaleKind::kInvSqrt;
  return p;
}

void expect_exact(const char *name, const Problem &p) {
  const std::unique_ptr<Sut> sut = make_sut(own_kernel(name));
  const CheckResult result = algebra_exact(p, *sut);
  EXPECT_TRUE(result.passed()) << name << ": " << result.message;
}

TEST(Algebra, the_references_own_arithmetic) {
  using namespace field61;
  const uint64_t edges[] = {0, 1, 2, 36, kPrime / 2, kPrime - 2, kPrime - 1, 0x123456789abcdef};
  for (uint64_t x : edges)
    for (uint64_t y : edges)
      EXPECT_EQ(times(x, y), static_cast<uint64_t>(Wide{x} * y % kPrime));
  for (uint64_t x : edges)
    EXPECT_EQ(times(x, inverse(x)), x == 0 ? 0u : 1u);
  EXPECT_EQ(power(kGenerator, 3), 37u * 37 * 37);
  EXPECT_EQ(power(kGenerator, kOrder), 1u);
  // A primitive root: its order is no proper divisor of p - 1.
  for (uint64_t factor : {2, 3, 5, 7, 11, 13, 31, 41, 61, 151, 331, 1321}) {
    EXPECT_EQ(kOrder % factor, 0u);
    EXPECT_NE(power(kGenerator, kOrder / factor), 1u);
  }
}

TEST(Algebra, long_rows_in_eight_splits) {
  const Problem p = paged({4096, 0, 17}, 4);
  expect_exact("paged_attention_v1", p);
  expect_exact("paged_attention_v2", p);
  Problem c = p;
  c.family = Family::kCascade;
  c.seq_lens.clear();
  c.levels = {{16, 0, {3}, {2048}}, {8, 0, {1, 1}, {2048, 5}}};
  expect_exact("cascade_attention", c);
}

/// O and 2^LSE of every row, one after the other.
std::vector<uint64_t> values(const char *name, const Problem &p) {
  const std::unique_ptr<Sut> sut = make_sut(own_kernel(name));
  const Outcome run = run_tensors(field_inputs(p), *sut);
  EXPECT_TRUE(run.ok()) << run.check.message;
  std::vector<uint64_t> out;
  for (int r = 0; run.ok() && r < p.batch; ++r)
    for (int h = 0; h < run.after.heads(); ++h) {
      std::string wrong;
      const FieldRow row = field_result(run.after, r, h, wrong);
      EXPECT_EQ(wrong, "");
      out.push_back(row.mass);
      out.insert(out.end(), row.o.begin(), row.o.end());
    }
  return out;
}

// Kernels, split counts, block orders: every bit the same. In floating point none of these pairs
// agree.
TEST(Algebra, kernels_splits_and_orders_agree_bit_for_bit) {
  Problem p = paged({700, 33, 0, 16}, 12);
  const auto expected = values("paged_attention_v1", p);
  ASSERT_EQ(expected.size(), 4u * 24 * 65);
  for (int splits : {0, 1, 2, 3, 7, 8, 32, 100}) {
    p.num_splits = splits;
    EXPECT_EQ(values("paged_attention_v2", p), expected) << splits << " splits";
  }
  p.num_splits = 5;
  p.schedule = {BlockOrder::kSeeded, CopyTiming::kSeeded, 99};
  EXPECT_EQ(values("paged_attention_v2", p), expected);
  p.schedule.order = BlockOrder::kDescending;
  EXPECT_EQ(values("paged_attention_v1", p), expected);
}

// A cascade of one level has the same keys, but another kernel and another tile.
TEST(Algebra, a_flat_cascade_is_paged_attention) {
  Problem flat = paged({300, 41}, 4);
  Problem levels = flat;
  levels.family = Family::kCascade;
  levels.seq_lens.clear();
  levels.levels = {{16, 0, {1, 1}, {300, 41}}};
  for (int splits : {1, 3}) {
    levels.num_splits = splits;
    EXPECT_EQ(values("cascade_attention", levels), values("paged_attention_v1", flat));
  }
}

// The control of all comparisons above: one other literal changes the row that holds it.
TEST(Algebra, one_word_changes_the_values) {
  const Problem p = paged({64}, 4);
  const std::unique_ptr<Sut> sut = make_sut(own_kernel("paged_attention_v2"));
  Tensors t = field_inputs(p);
  const FieldRow before = field_reference(t, 0, 0);
  t.set_key(0, 0, 63, 0, 5, t.key(0, 0, 63, 0, 5) ^ 1);
  const Outcome run = run_tensors(t, *sut);
  std::string wrong;
  const FieldRow after = field_result(run.after, 0, 0, wrong);
  EXPECT_NE(after.mass, before.mass);
  EXPECT_NE(after.o, before.o);
  EXPECT_EQ(after.o, field_reference(t, 0, 0).o);
}

TEST(Algebra, a_word_that_is_no_number_is_reported) {
  const Problem p = paged({64}, 4);
  for (bool key : {true, false}) {
    Tensors t = field_inputs(p);
    if (key)
      t.set_key(0, 0, 40, 1, 7, 0xffff);
    else
      t.set_val(0, 0, 40, 1, 7, 0xffff);
    const std::unique_ptr<Sut> sut = make_sut(own_kernel("paged_attention_v2"));
    const Outcome run = run_tensors(t, *sut);
    std::string wrong;
    (void)field_result(run.after, 0, 4, wrong); // the first query head of kv head 1
    EXPECT_NE(wrong.find("memory that holds no number"), std::string::npos) << wrong;
    wrong.clear();
    (void)field_result(run.after, 0, 0, wrong);
    EXPECT_EQ(wrong, "") << "kv head 0 does not read it";
  }
}

TEST(Algebra, calls_it_cannot_serve_are_refused) {
  Tensors t = field_inputs(paged({5}, 4));
  const assay_kernel &v1 = own_kernel("paged_attention_v1");
  AbiParams params = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
  EXPECT_EQ(v1.supports(params.get()), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(v1.last_error()).find("stream is null"), std::string::npos);
  params.paged.stream = &t;
  EXPECT_EQ(v1.supports(params.get()), ASSAY_OK);
  params.paged.head_dim = 128;
  params.paged.out_stride_head = 128;
  EXPECT_EQ(v1.supports(params.get()), ASSAY_UNSUPPORTED);
  params.paged.head_dim = 64;
  params.paged.target = ASSAY_TARGET_CUDA;
  EXPECT_EQ(v1.supports(params.get()), ASSAY_UNSUPPORTED);
}

TEST(Algebra, all_five_kernels_have_it) {
  for (const char *name : {"paged_attention_v1", "paged_attention_v2", "cascade_attention",
                           "merge_state", "merge_states"}) {
    EXPECT_TRUE(computes_field(own_kernel(name))) << name;
    EXPECT_TRUE(applies(*find_property("algebra_exact"), own_kernel(name))) << name;
  }
}

} // namespace
} // namespace assay
