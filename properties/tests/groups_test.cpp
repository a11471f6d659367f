// SPDX-License-Identifier: Apache-2.0
// One mistake is one group, whoever sees it; two mistakes are two.
#include "properties/run/groups.h"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "properties/case/case_text.h"
#include "properties/run/runner.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

using reference::Bug;
using reference::WithBug;

/// By properties that compare in every way there is. Defects are per thread: one worker, this one.
RunSummary checked_by_many(const assay_kernel &kernel) {
  std::vector<const Property *> some;
  for (const char *name :
       {"within_budget", "poison_untouched", "head_permutation", "page_size_invariance",
        "key_permutation", "key_duplication", "zero_query_counts_keys", "any_partition_count",
        "window_hides", "sink_equals_key", "cascade_equals_flat", "merge_commutative",
        "merge_any_order"})
    some.push_back(find_property(name));
  RunnerOptions options;
  options.limits = fuzz_limits();
  options.cases = 3;
  options.threads = 1;
  return run_properties({&kernel}, some, options, nullptr);
}

std::vector<FindingGroup> grouped(const RunSummary &summary) {
  return group_findings(summary, {.sut = [](const assay_kernel &k) { return make_sut(k); }});
}

std::string in_words(const std::vector<FindingGroup> &groups) {
  std::string text;
  for (const FindingGroup &group : groups) {
    const PropertyRun &first = *group.members[0];
    text += describe(cause_of(group.first().shrunk, group.first().result, *first.kernel,
                              *first.property)) +
            ":";
    for (const PropertyRun *member : group.members)
      text += std::string(" ") + member->property->name;
    text += "\n" + format_problem(group.first().shrunk);
  }
  return text;
}

size_t findings(const RunSummary &summary) {
  size_t n = 0;
  for (const PropertyRun &run : summary.runs)
    n += run.first.size();
  return n;
}

struct OneMistake {
  const char *kernel;
  Bug bug;
  const char *sharpest;
};

class Groups : public testing::TestWithParam<OneMistake> {};

TEST_P(Groups, OneMistakeIsOneGroup) {
  const OneMistake &one = GetParam();
  WithBug defect(one.bug);
  const RunSummary summary = checked_by_many(reference::kernel(one.kernel));
  const auto groups = grouped(summary);
  ASSERT_EQ(groups.size(), 1u) << in_words(groups);
  EXPECT_STREQ(groups[0].members[0]->property->name, one.sharpest);
  EXPECT_EQ(groups[0].members.size(), findings(summary));
  EXPECT_GE(findings(summary), 2u);
}

INSTANTIATE_TEST_SUITE_P(
    , Groups,
    testing::Values(OneMistake{"reference_v1", Bug::kDropsLastKey, "within_budget"},
                    OneMistake{"reference_v1", Bug::kMissingRescale, "within_budget"},
                    OneMistake{"reference_v1", Bug::kFixedKvHead, "within_budget"},
                    OneMistake{"reference_v1", Bug::kWindowOffByOne, "within_budget"},
                    OneMistake{"reference_v1", Bug::kStrayWrite, "within_budget"},
                    OneMistake{"reference_v2", Bug::kSinkPerSplit, "within_budget"},
                    OneMistake{"reference_cascade", Bug::kPrefixTwice, "within_budget"},
                    OneMistake{"reference_merge_states", Bug::kFirstTwice, "within_budget"}),
    [](const auto &info) {
      return fmt::format("{}_{}", info.param.kernel, static_cast<int>(info.param.bug));
    });

/// The kv heads wrong without sinks, and sinks ignored: neither case shows the other mistake.
assay_status two_mistakes(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  const WithBug defect(p.sinks != nullptr ? Bug::kSinkIgnored : Bug::kFixedKvHead);
  return reference::kernel("reference_v1").run(params);
}

TEST(GroupsOfSeveral, TwoMistakesAreTwoGroups) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.run = two_mistakes;
  const RunSummary summary = checked_by_many(kernel);
  const auto groups = grouped(summary);
  EXPECT_EQ(groups.size(), 2u) << in_words(groups);
  std::set<const PropertyRun *> members;
  for (const FindingGroup &group : groups)
    members.insert(group.members.begin(), group.members.end());
  EXPECT_EQ(members.size(), findings(summary)); // none is lost, none is in two groups
}

TEST(GroupsOfSeveral, NoFindingIsNoGroup) {
  EXPECT_TRUE(grouped(checked_by_many(reference::kernel("reference_merge_state"))).empty());
}

// The name of a mistake: another seed draws other cases and shrinks to the same kind.
TEST(Fingerprint, SurvivesAnotherSeed) {
  WithBug defect(Bug::kFixedKvHead);
  std::set<std::string> names;
  for (uint64_t seed : {1u, 2u, 3u}) {
    RunnerOptions options;
    options.cases = 6;
    options.threads = 1;
    options.seed = seed;
    const assay_kernel &kernel = reference::kernel("reference_v1");
    const Property &property = *find_property("within_budget");
    const auto summary = run_properties({&kernel}, {&property}, options, nullptr);
    ASSERT_EQ(summary.runs[0].first.size(), 1u);
    const Finding &f = summary.runs[0].first[0];
    names.insert(fingerprint(kernel, property, cause_of(f.shrunk, f.result, kernel, property)));
  }
  EXPECT_EQ(names.size(), 1u);
  EXPECT_EQ(names.begin()->size(), 16u);
}

Cause value(std::vector<std::string> features, bool o, bool lse) {
  Cause c;
  c.symptom.kind = Symptom::Kind::kOutside;
  c.features = std::move(features);
  c.wrong_o = o;
  c.wrong_lse = lse;
  return c;
}

Cause hazard(const std::string &line) {
  Cause c;
  c.symptom = hazard_symptom(line);
  return c;
}

TEST(Alike, ByWhatTheCaseKeepsAndWhichOutputIsWrong) {
  EXPECT_TRUE(alike(value({}, true, true), value({}, false, true)));
  EXPECT_FALSE(alike(value({}, true, false), value({}, false, true)));
  EXPECT_FALSE(alike(value({"sink"}, true, false), value({}, true, false)));
  Cause sink = value({"sink"}, true, false), plain = value({}, true, false);
  sink.shape = plain.shape = {"head group"};
  EXPECT_TRUE(alike(sink, value({"sink"}, true, false)));
  EXPECT_FALSE(alike(plain, value({}, true, false)));
  EXPECT_FALSE(alike(value({}, true, false), hazard("a.cuh:3: misaligned: x")));
}

TEST(Alike, ByThePlaceOfAHazard) {
  const Cause a = hazard("kernels/a.cuh:31: uninit-shared-read: byte 4 of 16 [block 0]");
  EXPECT_EQ(a.symptom.file, "kernels/a.cuh");
  EXPECT_EQ(a.symptom.line, 31);
  EXPECT_EQ(a.symptom.where, "uninit-shared-read at kernels/a.cuh:31");
  EXPECT_TRUE(alike(a, hazard("kernels/a.cuh:31: uninit-shared-read: byte 9 of 16 [block 7]")));
  EXPECT_FALSE(alike(a, hazard("kernels/a.cuh:32: uninit-shared-read: byte 4 of 16 [block 0]")));
  EXPECT_FALSE(alike(a, hazard("kernels/a.cuh:31: misaligned: byte 4 of 16 [block 0]")));
  const Cause died = hazard("the kernel's process died of signal 11 (Segmentation fault)");
  EXPECT_EQ(died.symptom.kind, Symptom::Kind::kCrash);
  EXPECT_FALSE(alike(a, died));
  EXPECT_TRUE(alike(hazard("the kernel has not returned for 60 s"),
                    hazard("the kernel has not returned for 0.5 s")));
  EXPECT_EQ(hazard("the worker sent no sound reply").symptom.kind, Symptom::Kind::kCrash);
}

} // namespace
} // namespace assay
