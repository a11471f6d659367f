// SPDX-License-Identifier: Apache-2.0
// Cases made, run and judged on a machine: on a GPU at production size too, here on its twin.
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "properties/big/big_check.h"
#include "properties/call/materialise.h"
#include "properties/case/case_text.h"
#include "properties/case/codec.h"
#include "properties/case/device_limits.h"
#include "properties/case/shrink.h"

namespace assay {
namespace {

constexpr bool kOnGpu =
#ifdef ASSAY_BIG_ON_GPU
    true;
#else
    false;
#endif

Problem drawn(std::mt19937 &random) {
  std::vector<uint8_t> bytes(400);
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random());
  return decode_family(bytes, check_limits(), Family::kPaged);
}

class Big : public testing::Test {
protected:
  void SetUp() override {
    if (machine() == nullptr) GTEST_SKIP() << "no GPU";
  }
  static std::unique_ptr<Machine> machine() { return kOnGpu ? make_gpu() : make_twin(); }
};

/// Elements of a cache that carry values, as the machine and as the host make them.
void expect_same_cache(const Problem &p, Machine &machine, bool keys, uint64_t &elements) {
  const Tensors host = materialise(p);
  const CacheView &cache = host.caches[0];
  const std::vector<PageOwner> owners = page_owners(p, cache);
  CacheFill fill = cache_fill(p, cache, keys);
  auto *there = machine.allocate(owners.size() * sizeof(PageOwner));
  machine.copy(there, owners.data(), owners.size() * sizeof(PageOwner));
  fill.owners = static_cast<const PageOwner *>(there);
  const auto bytes = static_cast<size_t>(fill.elements() * fill.element_bytes);
  fill.to = static_cast<std::byte *>(machine.allocate(bytes));
  machine.fill_cache(fill);
  machine.finish();
  std::vector<std::byte> got(bytes);
  machine.copy(got.data(), fill.to, bytes);
  const Buffer &want = host.buffers[static_cast<size_t>(keys ? cache.k : cache.v)];
  ASSERT_EQ(want.bytes.size(), bytes);
  for (size_t i = 0; i < bytes; ++i) {
    if (want.live[i] == 0) continue;
    ++elements;
    ASSERT_EQ(got[i], want.bytes[i]) << "byte " << i << " of " << (keys ? "K" : "V") << " of\n"
                                     << format_problem(p);
  }
}

TEST_F(Big, CachesAreBitForBitTheHosts) {
  std::mt19937 random(5);
  uint64_t elements = 0;
  for (int i = 0; i < 400; ++i) {
    const std::unique_ptr<Machine> one = machine();
    Problem p = drawn(random);
    // Every regime of K and V in turn, whatever is drawn.
    const auto regimes = static_cast<int>(Regime::kOffPeak) + 1;
    p.k.regime = static_cast<Regime>(i % regimes);
    p.v.regime = static_cast<Regime>(i / regimes % regimes);
    p.huge_pool = false;
    for (const bool keys : {true, false})
      expect_same_cache(p, *one, keys, elements);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(elements, 1'000'000u);
}

Problem plain_case(int batch, int keys) {
  Problem p;
  p.family = Family::kPaged;
  p.batch = batch;
  p.num_kv_heads = kOnGpu ? 8 : 2;
  p.group_size = 4;
  p.head_dim = 128;
  p.page_size = 16;
  p.seq_lens.assign(static_cast<size_t>(batch), keys);
  p.placement = Placement::kShuffled;
  p.q = {Regime::kNormal, 0, 1};
  p.k = {Regime::kNormal, 0, 2};
  p.v = {Regime::kNormal, 0, 3};
  return p;
}
Problem sized_case() { return kOnGpu ? plain_case(64, 131072) : plain_case(3, 300); }

TEST_F(Big, RightKernelsPass) {
  const std::unique_ptr<Machine> one = machine();
  const Problem p = sized_case();
  const CheckResult result =
      big_within_budget(p, own_kernel("paged_attention_v2", one->target()), *one);
  EXPECT_TRUE(result.passed()) << result.message;
  EXPECT_EQ(result.outputs, static_cast<uint64_t>(p.batch * p.num_qo_heads()) * 129);
}

Machine *running = nullptr;

/// v2, but the first element of the last row's last head is another number.
assay_status run_wrong(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  if (assay_status status = own_kernel("paged_attention_v2", running->target()).run(params))
    return status;
  running->finish();
  const int64_t at = (p.batch - 1) * p.out_stride_batch + (p.num_qo_heads - 1) * p.out_stride_head;
  const uint16_t one = 0x3F80;
  running->copy(static_cast<uint16_t *>(p.out) + at, &one, sizeof one);
  return ASSAY_OK;
}

CheckResult judged_wrong(const Problem &p, Machine &machine) {
  running = &machine;
  assay_kernel wrong = own_kernel("paged_attention_v2", machine.target());
  wrong.run = run_wrong;
  return big_within_budget(p, wrong, machine);
}

TEST_F(Big, OneWrongElementIsNamed) {
  const std::unique_ptr<Machine> one = machine();
  const Problem p = sized_case();
  const CheckResult result = judged_wrong(p, *one);
  ASSERT_TRUE(result.failed()) << result.message;
  EXPECT_EQ(result.symptom.row, p.batch - 1);
  EXPECT_EQ(result.symptom.head, p.num_qo_heads() - 1);
  EXPECT_EQ(result.symptom.dim, 0);
}

TEST_F(Big, AFailingCaseShrinksToWhatAHostHolds) {
  Problem p = plain_case(64, 131072);
  p.num_kv_heads = 8;
  ASSERT_TRUE(is_big(p));
  // Without a GPU a rule stands in for the kernel.
  const auto fails = [](const Problem &c) {
    if (!kOnGpu || !is_big(c)) return c.batch > 0 && c.seq_lens.back() > 0;
    const std::unique_ptr<Machine> one = machine();
    return judged_wrong(c, *one).failed();
  };
  const Problem small = shrink(p, fails, {.checks = 400, .seconds = 60});
  EXPECT_FALSE(is_big(small));
  EXPECT_EQ(small.batch, 1);
}

TEST_F(Big, TextSaysEqualLengthsOnce) {
  Problem p = plain_case(64, 131072);
  p.num_kv_heads = 8;
  p.seq_lens[0] = 5;
  Case written;
  written.problem = p;
  const std::string text = format_case(written);
  EXPECT_NE(text.find("seq_lens = 5, 63 x 131072\n"), std::string::npos) << text;
  const auto parsed = parse_case(text);
  ASSERT_TRUE(std::holds_alternative<Case>(parsed)) << std::get<CaseError>(parsed).message;
  EXPECT_EQ(std::get<Case>(parsed).problem, p);
  for (const char *wrong : {"0 x 5", "2000000 x 5", "64 x", "x 5", "1 x 2 x 3"}) {
    std::string other = text;
    other.replace(other.find("5, 63 x 131072"), 14, wrong);
    EXPECT_TRUE(std::holds_alternative<CaseError>(parse_case(other))) << wrong;
  }
}

} // namespace
} // namespace assay
