// SPDX-License-Identifier: Apache-2.0
#include "properties/run/runner.h"

#include <unistd.h>

#include <map>

#include <gtest/gtest.h>

#include "properties/relate/outcome.h"
#include "properties/run/groups.h"
#include "properties/run/needed_calls.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

TEST(ReachedSizes, AreThoseOfTenDraws) {
  ReachedSizes few, more;
  Problem p;
  p.seq_lens = {3};
  for (p.batch = 1; p.batch <= 9; ++p.batch)
    few.add(p);
  EXPECT_TRUE(few.sizes().empty());
  p.batch = 400;
  p.seq_lens = {3, 70};
  more.add(p);
  few.merge(more);
  EXPECT_EQ(few.sizes().at("batch"), 1);
  for (int i = 0; i < 9; ++i)
    few.add(p);
  EXPECT_EQ(few.sizes().at("batch"), 400);
  EXPECT_EQ(few.sizes().at("keys of a row"), 70);
}

RunnerOptions quick(int threads) {
  RunnerOptions options;
  options.cases = 6;
  options.threads = threads;
  return options;
}

std::vector<const Property *> some(std::initializer_list<const char *> names) {
  std::vector<const Property *> out;
  for (const char *name : names)
    out.push_back(find_property(name));
  return out;
}

const assay_kernel *v1() { return &reference::kernel("reference_v1"); }

TEST(Runner, CountsAndClassesDoNotDependOnThreads) {
  auto properties = some({"poison_untouched", "page_permutation", "run_to_run"});
  auto one = run_properties({v1()}, properties, quick(1), nullptr);
  auto two = run_properties({v1()}, properties, quick(2), nullptr);
  ASSERT_EQ(one.runs.size(), 3u);
  for (size_t i = 0; i < one.runs.size(); ++i) {
    EXPECT_EQ(one.runs[i].cases, two.runs[i].cases);
    EXPECT_EQ(one.runs[i].classes, two.runs[i].classes);
    EXPECT_GE(one.runs[i].cases, 6);
  }
  EXPECT_EQ(one.findings(), 0);
  EXPECT_FALSE(one.incomplete());
}

/// A property of paged kernels that is not in the table.
Property home_made(CheckResult (*check)(const Problem &, Sut &)) {
  Property property = *find_property("run_to_run");
  property.name = "home_made";
  property.families = 1u << static_cast<unsigned>(Family::kPaged);
  property.check = check;
  return property;
}

// It calls the kernel and looks at nothing.
TEST(Runner, ACaseInWhichNothingIsComparedDoesNotCount) {
  const Property blind =
      home_made([](const Problem &p, Sut &sut) { return run_problem(p, sut).check; });
  const RunSummary summary = run_properties({v1()}, {&blind}, quick(1), nullptr);
  const PropertyRun &run = summary.runs[0];
  EXPECT_GT(run.hollow_cases, 0);
  EXPECT_EQ(run.discarded, run.hollow_cases);
  EXPECT_EQ(run.classes.count("several_tiles"), 0u);
  EXPECT_TRUE(summary.incomplete());
}

// What a property takes away has not run, whatever the draw had.
TEST(Runner, ClassesAreThoseOfTheCallsThatRan) {
  const Property without_window = home_made([](const Problem &p, Sut &sut) {
    Problem plain = p;
    plain.window_left = -1;
    const Outcome run = run_problem(plain, sut);
    return run.ok() ? same_bits(run.after, run.after, "itself") : run.check;
  });
  const RunSummary summary = run_properties({v1()}, {&without_window}, quick(1), nullptr);
  const PropertyRun &run = summary.runs[0];
  EXPECT_EQ(run.classes.count("window_cuts"), 0u);
  EXPECT_EQ(run.missing, std::vector<std::string>{"window_cuts"});
}

TEST(Runner, AnUnreachableClassMakesTheRunIncomplete) {
  RunnerOptions options = quick(1);
  auto summary = run_properties({v1()}, some({"run_to_run"}), options, nullptr);
  EXPECT_TRUE(summary.runs[0].missing.empty());
  // A kernel that refuses everything decides no case: the run must not count as a pass.
  static assay_kernel refusing = *v1();
  refusing.supports = [](const void *) -> assay_status { return ASSAY_UNSUPPORTED; };
  summary = run_properties({&refusing}, some({"run_to_run"}), options, nullptr);
  EXPECT_EQ(summary.cases(), 0);
  EXPECT_TRUE(summary.incomplete());
  EXPECT_FALSE(summary.runs[0].missing.empty());
}

TEST(Runner, AFeatureTheKernelRefusesIsNoGap) {
  static assay_kernel plain = *v1();
  plain.supports = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    bool features = p.kv_dtype != p.dtype || p.q_len > 1 || p.window_left >= 0 ||
                    p.logits_soft_cap > 0 || p.alibi_slopes || p.sinks;
    return features ? ASSAY_UNSUPPORTED : ASSAY_OK;
  };
  auto summary =
      run_properties({&plain}, some({"run_to_run", "fp8_equals_widened"}), quick(1), nullptr);
  EXPECT_FALSE(summary.incomplete());
  for (const PropertyRun &run : summary.runs)
    EXPECT_GT(run.unsupported, 0) << run.property->name;
  EXPECT_GT(summary.runs[0].cases, 0);
}

TEST(Runner, TheFirstFailureIsShrunkAndStillFails) {
  // The defect is per thread: one worker, this one.
  reference::WithBug defect(reference::Bug::kLseWithoutSum);
  auto summary = run_properties({v1()}, some({"key_duplication"}), quick(1), nullptr);
  ASSERT_EQ(summary.runs.size(), 1u);
  ASSERT_EQ(summary.runs[0].first.size(), 1u);
  const Finding &f = summary.runs[0].first[0];
  EXPECT_TRUE(f.result.failed());
  EXPECT_LE(complexity(f.shrunk), complexity(f.drawn));
  EXPECT_EQ(f.shrunk.batch, 1);
  EXPECT_GT(summary.findings(), 0);
}

TEST(Runner, WhatFailsOnceIsKeptAsItWasDrawn) {
  static Property once = *find_property("run_to_run");
  once.check = [](const Problem &, Sut &) {
    static int calls = 0;
    return calls++ > 0 ? CheckResult::pass()
                       : CheckResult::fail("other bits", plain_symptom(Symptom::Kind::kBits, ""));
  };
  auto summary = run_properties({v1()}, {&once}, quick(1), nullptr);
  ASSERT_EQ(summary.runs[0].first.size(), 1u);
  const Finding &f = summary.runs[0].first[0];
  EXPECT_EQ(f.result.message, "not in every run of the case: other bits");
  EXPECT_EQ(f.shrunk, f.drawn);
}

/// Right until its process has made so many calls.
template <int kCalls>
assay_status wrong_after(const void *params) {
  static int calls = 0;
  const reference::WithBug bug(++calls > kCalls ? reference::Bug::kFixedKvHead
                                                : reference::Bug::kNone);
  return reference::kernel("reference_v1").run(params);
}

TEST(Runner, WhatNeedsCallsBeforeItSaysSo) {
  if (processes_need_one_thread()) GTEST_SKIP() << "a process a case, under AddressSanitizer";
  assay_kernel kernel = *v1();
  kernel.run = wrong_after<20>;
  RunnerOptions options = quick(1);
  options.cases = 12;
  options.isolate = true;
  options.shrink.seconds = 2;
  const auto summary = run_properties(
      {&kernel}, some({"within_budget", "head_permutation", "page_permutation"}), options, nullptr);
  size_t found = 0;
  for (const PropertyRun &run : summary.runs)
    for (const Finding &f : run.first) {
      ++found;
      EXPECT_TRUE(f.after_others) << run.property->name;
      EXPECT_EQ(f.result.message.rfind("only after ", 0), 0u) << f.result.message;
    }
  ASSERT_GE(found, 2u);
  const auto groups =
      group_findings(summary, {.sut = [](const assay_kernel &k) { return make_process_sut(k); }});
  EXPECT_EQ(groups.size(), 1u);
  EXPECT_NE(describe(groups[0].members[0].cause).find("needs calls before it"), std::string::npos);
}

/// Keeps the window of the first call with these shapes: a plan that is not made again.
assay_status keeps_first_window(const void *params) {
  static std::map<std::pair<int, int>, int> windows;
  assay_paged_params p = *static_cast<const assay_paged_params *>(params);
  p.window_left = windows.try_emplace({p.batch, p.num_qo_heads}, p.window_left).first->second;
  return reference::kernel("reference_v1").run(&p);
}

// What was kept is named: the call before it differs in that field alone.
TEST(Runner, TheCallThatAFailureNeedsIsFoundAndShrunk) {
  if (processes_need_one_thread()) GTEST_SKIP() << "a process a case, under AddressSanitizer";
  assay_kernel kernel = *v1();
  kernel.run = keeps_first_window;
  RunnerOptions options = quick(1);
  options.cases = 12;
  options.isolate = true;
  const auto summary = run_properties({&kernel}, some({"within_budget"}), options, nullptr);
  ASSERT_EQ(summary.runs[0].first.size(), 1u);
  const Finding &f = summary.runs[0].first[0];
  EXPECT_TRUE(f.after_others);
  ASSERT_EQ(f.before.size(), 1u);
  EXPECT_NE(f.before[0].window_left, f.shrunk.window_left);
  Problem same = f.before[0];
  same.window_left = f.shrunk.window_left;
  EXPECT_EQ(same, f.shrunk) << how_earlier_differs(f.before[0], f.shrunk);
  EXPECT_NE(f.result.message.find("window_left = "), std::string::npos) << f.result.message;
  // As text it is one case with another in front, and fails in a new process.
  Case c;
  c.before = f.before;
  c.problem = f.shrunk;
  const auto parsed = parse_case(format_case(c));
  ASSERT_TRUE(std::holds_alternative<Case>(parsed)) << std::get<CaseError>(parsed).message;
  EXPECT_EQ(std::get<Case>(parsed), c);
  const auto sut = make_process_sut(kernel);
  for (const Problem &p : c.before)
    EXPECT_TRUE(checked(*find_property("within_budget"), p, *sut, nullptr).passed());
  EXPECT_TRUE(checked(*find_property("within_budget"), c.problem, *sut, nullptr).failed());
}

// That two runs of a call differ is said before what else is wrong with it.
TEST(Runner, AnUnstableKernelIsCalledSo) {
  assay_kernel kernel = *v1();
  kernel.run = [](const void *params) -> assay_status {
    static int calls = 0;
    const reference::WithBug bug(++calls % 2 == 0 ? reference::Bug::kFixedKvHead
                                                  : reference::Bug::kLseWithoutSum);
    return reference::kernel("reference_v1").run(params);
  };
  const auto summary = run_properties({&kernel}, some({"within_budget"}), quick(1), nullptr);
  ASSERT_EQ(summary.runs[0].first.size(), 1u);
  const std::string &said = summary.runs[0].first[0].result.message;
  EXPECT_EQ(said.rfind("unstable, two runs of one call give other bits (second run: row ", 0), 0u)
      << said;
}

/// Visits the keys of a batch in another order in every other call.
assay_status takes_turns(const void *params) {
  static int calls = 0;
  const reference::WithBug order(++calls % 2 == 0 ? reference::Bug::kBatchOrder
                                                  : reference::Bug::kNone);
  return reference::kernel("reference_v1").run(params);
}

// What two of its runs give is judged, not compared.
TEST(Runner, AKernelWithoutDeterminismIsHeldToItsBounds) {
  assay_kernel kernel = *v1();
  kernel.run = takes_turns;
  kernel.key_order = nullptr;
  const auto properties =
      some({"poison_untouched", "pdl_equals_plain", "nan_containment", "batch_independence",
            "head_permutation", "page_permutation", "page_remap", "window_hides"});
  kernel.determinism = ASSAY_DETERMINISM_NONE;
  RunnerOptions few = quick(2);
  few.cases = 3;
  for (const PropertyRun &run : run_properties({&kernel}, properties, few, nullptr).runs) {
    EXPECT_TRUE(run.first.empty()) << run.property->name << ": " << run.first[0].result.message;
    EXPECT_GE(run.cases, 3) << run.property->name;
  }
  kernel.determinism = ASSAY_DETERMINISM_RUN_TO_RUN;
  few.shrink.checks = 1;
  const auto found = run_properties({&kernel}, some({"page_permutation"}), few, nullptr);
  EXPECT_EQ(found.runs[0].first.size(), 1u);
}

// What it reads of dead memory, hidden keys and other rows is seen all the same.
TEST(Runner, AKernelWithoutDeterminismMayReadNoOtherData) {
  assay_kernel kernel = *v1();
  kernel.determinism = ASSAY_DETERMINISM_NONE;
  using reference::Bug;
  for (const auto &[bug, property] :
       {std::pair{Bug::kLateMask, "poison_untouched"}, std::pair{Bug::kNanLeak, "nan_containment"},
        std::pair{Bug::kWindowLateMask, "window_hides"}}) {
    const reference::WithBug with(bug);
    RunnerOptions options = quick(1);
    options.cases = 20;
    options.shrink.checks = 1;
    const auto summary = run_properties({&kernel}, some({property}), options, nullptr);
    EXPECT_EQ(summary.runs[0].first.size(), 1u) << property;
  }
}

// Shrunk in a process that remembers, the case would fail there alone.
TEST(Runner, WhatFailsAloneIsShrunkAlone) {
  if (processes_need_one_thread()) GTEST_SKIP() << "a process a case, under AddressSanitizer";
  assay_kernel kernel = *v1();
  kernel.run = [](const void *params) -> assay_status {
    // A kv head too few; once it has happened, always.
    static bool broken = false;
    broken |= static_cast<const assay_paged_params *>(params)->num_kv_heads > 1;
    const reference::WithBug bug(broken ? reference::Bug::kLseWithoutSum : reference::Bug::kNone);
    return reference::kernel("reference_v1").run(params);
  };
  RunnerOptions options = quick(1);
  options.isolate = true;
  const auto summary = run_properties({&kernel}, some({"within_budget"}), options, nullptr);
  ASSERT_EQ(summary.runs[0].first.size(), 1u);
  const Finding &f = summary.runs[0].first[0];
  EXPECT_FALSE(f.after_others);
  EXPECT_EQ(f.shrunk.num_kv_heads, 2);
  EXPECT_TRUE(checked(*find_property("within_budget"), f.shrunk, *make_process_sut(kernel), nullptr)
                  .failed());
}

TEST(Runner, AHangIsSaidAtOnceAndShrunkByOneProperty) {
  if (processes_need_one_thread()) GTEST_SKIP() << "a process a case, under AddressSanitizer";
  assay_kernel kernel = *v1();
  kernel.name = "hangs_with_a_group";
  kernel.run = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    while (p.num_qo_heads > p.num_kv_heads)
      pause();
    return reference::kernel("reference_v1").run(params);
  };
  RunnerOptions options = quick(1);
  options.make_sut = [](const assay_kernel &k) {
    return make_process_sut(k, std::chrono::milliseconds(300));
  };
  options.shrink.seconds = 2;
  std::vector<std::string> said;
  options.hung = [&](const PropertyRun &r, const Problem &p, const CheckResult &) {
    EXPECT_GT(p.group_size, 1);
    said.push_back(std::string("hung ") + r.property->name);
  };
  options.found = [&](const PropertyRun &r) {
    said.push_back(std::string("found ") + r.property->name);
  };
  const auto summary =
      run_properties({&kernel}, some({"within_budget", "run_to_run"}), options, nullptr);
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].substr(0, 5), "hung ");
  for (const PropertyRun &run : summary.runs) {
    EXPECT_EQ(run.findings, 1) << run.property->name; // the property is left
    const bool first = said[0] == std::string("hung ") + run.property->name;
    ASSERT_EQ(run.first.size(), 1u);
    EXPECT_EQ(run.first[0].stats.checks > 0, first);
    if (first) {
      EXPECT_EQ(run.first[0].shrunk.group_size, 2);
    }
  }
}

TEST(Runner, AnExceptionIsAHarnessErrorNotAPass) {
  static assay_kernel throwing = *v1();
  throwing.run = [](const void *) -> assay_status { throw std::runtime_error("broken"); };
  auto summary = run_properties({&throwing}, some({"run_to_run"}), quick(1), nullptr);
  EXPECT_EQ(summary.runs[0].harness_error, "exception: broken");
  EXPECT_TRUE(summary.incomplete());
}

// The oracle is not taken on trust: some rows of every run are recomputed in interval arithmetic.
TEST(Runner, CountsWhatTheOracleJudgedAndCertified) {
  RunnerOptions options = quick(1);
  options.cases = 3;
  options.shrink.checks = 1;
  auto summary = run_properties({v1()}, some({"within_budget"}), options, nullptr);
  EXPECT_GT(summary.outputs(), 1000u);
  EXPECT_GE(summary.certified_rows(), 1u);
  EXPECT_EQ(summary.findings(), 0);
  // A row with a finding always is.
  reference::WithBug defect(reference::Bug::kDropsLastKey);
  auto found = run_properties({v1()}, some({"within_budget"}), options, nullptr);
  EXPECT_GE(found.certified_rows(), static_cast<uint64_t>(found.findings()));
  EXPECT_GT(found.findings(), 0);
}

TEST(Runner, ErrorsAreCountedInTwentiethsOfTheBound) {
  ErrorHistogram errors;
  for (const double ratio : {0.0, 0.049, 0.05, 0.999, 1.0, 1.001, 1e300})
    errors.add(ratio);
  EXPECT_EQ(errors.cases[0], 1u);
  EXPECT_EQ(errors.cases[1], 1u);
  EXPECT_EQ(errors.cases[19], 2u);
  EXPECT_EQ(errors.cases[20], 2u);
}

TEST(Runner, ATimeBudgetEndsTheRun) {
  RunnerOptions options = quick(1);
  options.budget = 1e-9; // spent by the first case; the others are those of missing classes
  const auto none = [&] { return run_properties({v1()}, some({"run_to_run"}), options, nullptr); };
  const auto first = none(), second = none();
  EXPECT_GE(first.cases(), 1);
  EXPECT_EQ(first.cases(), second.cases());
  EXPECT_FALSE(first.incomplete());
  options.budget = 0.2;
  EXPECT_GT(run_properties({v1()}, some({"run_to_run"}), options, nullptr).seconds, 0.2);
}

} // namespace
} // namespace assay
