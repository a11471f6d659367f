// SPDX-License-Identifier: Apache-2.0
// Every property on every kernel of this library, RapidCheck under GoogleTest: one test per pair.
// A failure prints the seed line, writes the shrunk case, and names the command that replays it.
// RC_PARAMS="seed=... max_success=..." works as usual.
#include <sstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "kernels/simt/asan.h"
#include "properties/cli/findings/case_file.h"
#include "properties/run/probe.h"
#include "properties/run/requirements.h"
#include "properties/run/runner.h"
#include "properties/tests/case_gen.h"

namespace assay {
namespace {

struct Pair {
  const assay_kernel *kernel;
  const Property *property;
};

std::vector<Pair> pairs() {
  std::vector<Pair> out;
  for (const assay_kernel &kernel : linked_kernels())
    for (const Property &property : properties())
      if (kernel.target == ASSAY_TARGET_SIMT && applies(property, kernel))
        out.push_back({&kernel, &property});
  return out;
}

rc::detail::TestParams short_params() {
  // RapidCheck's default of 100 is what `assay check` is for; here every pair runs on every build.
  // A sanitizer looks at code, which few cases reach, and takes four times as long.
  constexpr int kCases = ASSAY_ASAN ? 1 : 2;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (params.maxSuccess == rc::detail::TestParams().maxSuccess) params.maxSuccess = kCases;
  params.maxDiscardRatio = 100;
  params.disableShrinking = true; // ours works on fields and writes the case
  return params;
}

/// The lines a person needs after a failure.
std::string report(const Pair &pair, const Problem &failing, uint64_t seed) {
  auto sut = make_sut(*pair.kernel);
  sut->set_replays_scores(true);
  auto fails = [&](const Problem &p) { return checked(*pair.property, p, *sut, nullptr).failed(); };
  Case c;
  c.kernel = pair.kernel->name;
  c.property = pair.property->name;
  c.target = "simt";
  c.problem = shrink(failing, fails);
  c.note = checked(*pair.property, c.problem, *sut, nullptr).message;
  std::string path = "findings/" + finding_name(c);
  write_case(path, c);
  return c.note + "\nRC_PARAMS=\"seed=" + std::to_string(seed) + "\"\nassay replay " + path;
}

class KernelProperty : public testing::TestWithParam<Pair> {};

TEST_P(KernelProperty, Holds) {
  const Pair &pair = GetParam();
  auto sut = make_sut(*pair.kernel);
  sut->set_replays_scores(true);
  Problem failing;
  bool failed = false;
  int decided = 0, unsupported = 0;
  const Envelope envelope =
      is_narrow(*pair.kernel) ? probe_envelope(*pair.kernel, false) : Envelope();
  auto testable = [&] {
    Problem p = envelope.fit(*gen_problem(check_limits(), sut->family()), check_limits());
    CheckResult r = pair.property->check(p, *sut);
    unsupported += r.unsupported;
    if (r.kind == CheckResult::Kind::kDiscard) RC_DISCARD("discarded");
    ++decided;
    if (!r.passed()) {
      failing = p;
      failed = true;
      RC_FAIL(r.message);
    }
  };
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(pair.kernel->name) + "/" + pair.property->name;
  rc::detail::TestParams params = short_params();
  auto result = rc::detail::checkTestable(testable, metadata, params);
  if (result.is<rc::detail::SuccessResult>()) return;
  if (decided == 0 && unsupported > 0) GTEST_SKIP() << "the kernel supports no such case";
  std::ostringstream text;
  printResultMessage(result, text);
  if (failed) text << "\n" << report(pair, failing, params.seed);
  FAIL() << text.str();
}

INSTANTIATE_TEST_SUITE_P(, KernelProperty, testing::ValuesIn(pairs()), [](const auto &info) {
  return std::string(info.param.kernel->name) + "_" + info.param.property->name;
});

TEST(KernelProperties, EveryKernelHasSome) {
  // Nine kernels, each with at least ten properties: an empty list would pass silently.
  std::map<std::string, int> count;
  for (const Pair &pair : pairs())
    ++count[pair.kernel->name];
  EXPECT_EQ(count.size(), 9u);
  for (const auto &[name, properties] : count)
    EXPECT_GE(properties, 10) << name;
}

// T2 rests on the bits of the MMA. Declared with 18 fraction bits for 25, which is an honest upper
// limit, T0 and T1 hold; the bit replay then models another machine and must say so.
TEST(ReplayedScores, HoldForTheMeasuredModelAndNoOther) {
  const assay_plugin &own = *assay_plugin_entry(ASSAY_ABI_MAJOR);
  static assay_kernel kernel = own.kernels[0];
  ASSERT_STREQ(kernel.name, "paged_attention_v1");
  RunnerOptions options;
  options.threads = 1;
  options.cases = 2; // times the weight of within_budget
  options.shrink.checks = 0;
  auto run = [&](int fraction_bits, bool replay_scores) {
    kernel.arithmetic.mma_fraction_bits = fraction_bits;
    options.replay_scores = replay_scores;
    return run_properties({&kernel}, {find_property("within_budget")}, options, nullptr);
  };
  EXPECT_EQ(run(25, false).runs[0].ratio_t2, 0);
  const RunSummary measured = run(25, true);
  EXPECT_EQ(measured.findings(), 0);
  EXPECT_GT(measured.runs[0].ratio_t2, 0.5);
  EXPECT_EQ(run(18, false).findings(), 0);
  EXPECT_GT(run(18, true).findings(), 0);
}

TEST(KernelProperties, CasesOfFuzzSizeAreDecided) {
  for (const Pair &pair : pairs()) {
    auto sut = make_sut(*pair.kernel);
    sut->set_replays_scores(true);
    bool decided = false;
    for (uint64_t seed = 0; seed < 200 && !decided; ++seed) {
      const Problem p = draw_problem(fuzz_limits(), sut->family(), 700 + seed);
      decided = checked(*pair.property, p, *sut, nullptr).passed();
    }
    if (!decided && is_narrow(*pair.kernel)) continue; // none of its calls is of that kind
    EXPECT_TRUE(decided) << pair.kernel->name << " " << pair.property->name;
  }
}

/// Our merge_state, but that zeros of O lose their sign.
assay_status clears_negative_zeros(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  const assay_status status = assay_merge_state(&p);
  if (status != ASSAY_OK || p.dtype != ASSAY_BF16) return status;
  for (int64_t row = 0; row < p.num_rows; ++row)
    for (int64_t i = 0; i < p.head_dim; ++i)
      if (uint16_t &x = static_cast<uint16_t *>(p.out)[row * p.out_stride_row + i]; x == 0x8000)
        x = 0;
  return status;
}

// What merging with an empty state returns has the bits of the other: -0 is one of them.
TEST(FragileBits, ASignOfZeroThatIsLostIsFound) {
  Problem p = decode_family({}, fuzz_limits(), Family::kMergeState);
  p.batch = 4;
  p.lse_regime = LseRegime::kOneAlive;
  p.v.regime = Regime::kNormal; // no zeros of its own
  int found = 0;
  for (assay_kernel kernel : linked_kernels()) {
    if (kernel.family != ASSAY_FAMILY_MERGE_STATE || kernel.target != ASSAY_TARGET_SIMT) continue;
    const Property &property = *find_property("merge_identity");
    EXPECT_TRUE(property.check(p, *make_simt_sut(kernel)).passed());
    kernel.run = clears_negative_zeros;
    found += property.check(p, *make_simt_sut(kernel)).failed();
  }
  EXPECT_EQ(found, 1);
}

} // namespace
} // namespace assay
