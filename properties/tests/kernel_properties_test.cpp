// SPDX-License-Identifier: Apache-2.0
// Every property on every kernel of this library, RapidCheck under GoogleTest: one test per pair.
// A failure prints the seed line, writes the shrunk case, and names the command that replays it.
// RC_PARAMS="seed=... max_success=..." works as usual.
#include <sstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/cli/session.h"
#include "properties/gen/problem_gen.h"

namespace assay {
namespace {

struct Pair {
  const assay_kernel *kernel;
  const Property *property;
};

std::vector<Pair> pairs() {
  std::vector<Pair> out;
  const assay_plugin *own = assay_plugin_entry(ASSAY_ABI_MAJOR);
  for (int i = 0; own != nullptr && i < own->num_kernels; ++i)
    for (const Property &property : properties())
      if (own->kernels[i].target == ASSAY_TARGET_SIMT && applies(property, own->kernels[i]))
        out.push_back({&own->kernels[i], &property});
  return out;
}

rc::detail::TestParams short_params() {
  // RapidCheck's default of 100 is what `assay check` is for; here every pair runs on every build.
  constexpr int kCases = 12;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (params.maxSuccess == rc::detail::TestParams().maxSuccess) params.maxSuccess = kCases;
  params.maxDiscardRatio = 100;
  params.disableShrinking = true; // ours works on fields and writes the case
  return params;
}

/// The lines a person needs after a failure.
std::string report(const Pair &pair, const Problem &failing, uint64_t seed) {
  auto sut = make_sut(*pair.kernel);
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
  Problem failing;
  bool failed = false;
  int decided = 0, unsupported = 0;
  auto testable = [&] {
    Problem p = *gen_problem(check_limits(), sut->family());
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
  // Five kernels, each with at least ten properties: an empty list would pass silently.
  std::map<std::string, int> count;
  for (const Pair &pair : pairs())
    ++count[pair.kernel->name];
  EXPECT_EQ(count.size(), 5u);
  for (const auto &[name, properties] : count)
    EXPECT_GE(properties, 10) << name;
}

} // namespace
} // namespace assay
