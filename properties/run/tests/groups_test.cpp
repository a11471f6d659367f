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
    text += describe(group.members[0].cause) + ":";
    for (const NamedFinding &member : group.members)
      text += std::string(" ") + member.run->property->name;
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
  EXPECT_STREQ(groups[0].members[0].run->property->name, one.sharpest);
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
    for (const NamedFinding &member : group.members)
      members.insert(member.run);
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

Cause of(const Hazard &hazard) {
  Cause c;
  c.symptom = symptom_of(hazard);
  return c;
}
Hazard executor(const char *name, int line, const char *text = "words") {
  return {.kind = Hazard::Kind::kExecutor,
          .name = name,
          .file = "kernels/a.cuh",
          .line = line,
          .text = text};
}

TEST(Alike, ByWhatTheCaseKeepsAndWhichOutputIsWrong) {
  EXPECT_TRUE(alike(value({}, true, true), value({}, false, true)));
  EXPECT_FALSE(alike(value({}, true, false), value({}, false, true)));
  EXPECT_FALSE(alike(value({"sink"}, true, false), value({}, true, false)));
  Cause sink = value({"sink"}, true, false), plain = value({}, true, false);
  sink.shape = plain.shape = {"head group"};
  EXPECT_TRUE(alike(sink, value({"sink"}, true, false)));
  EXPECT_FALSE(alike(plain, value({}, true, false)));
  EXPECT_FALSE(alike(value({}, true, false), of(executor("misaligned", 3))));
}

TEST(Alike, ByThePlaceOfAHazard) {
  const Cause a = of(executor("uninit-shared-read", 31));
  EXPECT_EQ(a.symptom.file, "kernels/a.cuh");
  EXPECT_EQ(a.symptom.line, 31);
  EXPECT_EQ(a.symptom.where, "uninit-shared-read at kernels/a.cuh:31");
  EXPECT_TRUE(alike(a, of(executor("uninit-shared-read", 31))));
  EXPECT_FALSE(alike(a, of(executor("uninit-shared-read", 32))));
  EXPECT_FALSE(alike(a, of(executor("misaligned", 31))));
  // One missing order, by the schedule under which each case met it.
  const Cause in_flight = of(executor("async-in-flight-read", 31));
  EXPECT_TRUE(alike(in_flight, of(executor("unordered-access", 31))));
  EXPECT_TRUE(alike(in_flight, of(executor("uninitialised-shared-read", 31))));
  EXPECT_FALSE(alike(in_flight, of(executor("unordered-access", 32))));
  EXPECT_FALSE(alike(in_flight, of(executor("misaligned", 31))));
  const Hazard red_zone{.kind = Hazard::Kind::kExecutor, .name = "red-zone-written", .buffer = "o"};
  Hazard other = red_zone;
  other.buffer = "lse";
  EXPECT_FALSE(alike(of(red_zone), of(other)));
  const Cause died = of({.kind = Hazard::Kind::kSignal, .signal = 11});
  EXPECT_EQ(died.symptom.kind, Symptom::Kind::kCrash);
  EXPECT_EQ(died.symptom.where, "the kernel's process died of signal # (Segmentation fault)");
  EXPECT_FALSE(alike(a, died));
  EXPECT_FALSE(alike(died, of({.kind = Hazard::Kind::kSignal, .signal = 9})));
  EXPECT_FALSE(alike(died, of({.kind = Hazard::Kind::kHung})));
  EXPECT_TRUE(alike(of({.kind = Hazard::Kind::kThrown, .name = "no room for 3 keys"}),
                    of({.kind = Hazard::Kind::kThrown, .name = "no room for 1024 keys"})));
}

/// Fingerprint, cause in words, and whether the two are one group, of a run with this result.
std::string named(const CheckResult &result) {
  const assay_kernel &kernel = reference::kernel("reference_v1");
  const Property &property = *find_property("within_budget");
  const Cause cause = cause_of(Problem{}, result, kernel, property);
  return describe(cause) + " " + fingerprint(kernel, property, cause);
}

// A better wording must not change what a finding is called.
TEST(Words, OfMessagesChangeNoCauseAndNoFingerprint) {
  using enum Hazard::Kind;
  for (auto kind = kExecutor; kind <= Hazard::kLast; kind = Hazard::Kind(int(kind) + 1)) {
    Hazard plain{.kind = kind, .name = "name", .buffer = "o", .signal = 11, .text = "plain words"};
    Hazard polished = plain;
    polished.text = "a.cuh:12: the kernel: polished, the first of 3 words";
    EXPECT_EQ(named(CheckResult::fail("one", symptom_of(plain))),
              named(CheckResult::fail("another", symptom_of(polished))));
    EXPECT_TRUE(alike(of(plain), of(polished)));
    EXPECT_NE(symptom_of(plain).where, "");
  }
  Hazard at_line = executor("misaligned", 3, "plain"),
         polished = executor("misaligned", 3, "x:1: y");
  EXPECT_EQ(named(CheckResult::fail("one", symptom_of(at_line))),
            named(CheckResult::fail("two", symptom_of(polished))));
}

TEST(Words, OfDeclaredMistakesChangeNoCauseAndNoFingerprint) {
  const auto same = [](const auto &plain, const auto &polished) {
    EXPECT_EQ(named(CheckResult::fail("one", symptom_of(plain))),
              named(CheckResult::fail("another", symptom_of(polished))));
  };
  const WrongAnswer plain{.call = "kv.max_pages: value", .text = "kv.max_pages is -1", .ended = {}};
  WrongAnswer polished = plain;
  polished.text = "the call has fewer than no pages";
  same(plain, polished);
  using Kind = oracle::OrderError::Kind;
  for (auto kind = Kind::kRefused; kind <= oracle::OrderError::kLast; kind = Kind(int(kind) + 1)) {
    const oracle::OrderError error(kind, "plain words");
    same(error, oracle::OrderError(kind, "polished"));
    EXPECT_NE(*oracle::name_of(kind), 0);
  }
}

TEST(Words, OfDeclaredMistakesTellThemApart) {
  const auto place = [](const std::string &call, WrongAnswer::Asked asked,
                        WrongAnswer::Answer answer) {
    return symptom_of(WrongAnswer{.call = call, .asked = asked, .answer = answer, .ended = {}})
        .where;
  };
  using enum WrongAnswer::Asked;
  using enum WrongAnswer::Answer;
  EXPECT_EQ(place("q: null", kSupports, kTaken), "q: null: supports takes");
  EXPECT_EQ(place("q: null", kRun, kTaken), "q: null: run takes");
  EXPECT_EQ(place("levels[2].kv.k: alias", kRun, kTaken), "levels[#].kv.k: alias: run takes");
  EXPECT_EQ(place("limit of blocks", kPlan, kRefused), "limit of blocks: plan_size refuses");
  EXPECT_EQ(place("limit of blocks passed", kSupports, kNeither),
            "limit of blocks passed: supports neither takes nor refuses");
  const WrongAnswer ended{.ended = {{.kind = Hazard::Kind::kGone}}};
  EXPECT_EQ(symptom_of(ended).where, "asked about a call: the kernel's process is gone");
  using Error = oracle::OrderError;
  EXPECT_EQ(symptom_of(Error(Error::Kind::kTwice, "")).where, "key order: a key twice");
  EXPECT_EQ(symptom_of(Error(Error::Kind::kMissed, "")).where, "key order: a key missed");
}

TEST(Cause, NamesLayoutsAndTellsNeedsFromWhatWasNotTried) {
  const assay_kernel &kernel = reference::kernel("reference_v1");
  const Property &property = *find_property("within_budget");
  const CheckResult wrong = CheckResult::fail("", wrong_value(0, 0, 0, 1, 2, 0.1));
  const auto words = [&](const Problem &p, const ShrinkStats &stats) {
    return describe(cause_of(p, wrong, kernel, property, stats));
  };
  const Problem plain;
  Problem p = plain;
  p.k_layout = Layout::kHnd;
  p.v_pad = 1;
  EXPECT_NE(words(p, {}).find("keys in hnd, strides"), std::string::npos) << words(p, {});
  ShrinkStats cut{.exhausted = true, .tried = 1u << static_cast<unsigned>(ShrinkField::kPages)};
  EXPECT_NE(words(p, cut).find("needs keys in hnd, not tried without strides"), std::string::npos)
      << words(p, cut);
  Problem other = plain;
  other.lse_heads_outermost = true;
  const auto name = [&](const Problem &c) {
    return fingerprint(kernel, property, cause_of(c, wrong, kernel, property));
  };
  EXPECT_EQ((std::set<std::string>{name(plain), name(p), name(other)}).size(), 3u);
}

// They are those of findings that people have seen.
TEST(Words, OfPlacesStay) {
  const auto place = [](Hazard::Kind kind) {
    return symptom_of(Hazard{.kind = kind, .name = "E: 7 keys"}).where;
  };
  EXPECT_EQ(place(Hazard::Kind::kExited), "the kernel ended its process with exit(#)");
  EXPECT_EQ(place(Hazard::Kind::kHung), "the kernel has not returned for # s");
  EXPECT_EQ(place(Hazard::Kind::kThrown), "the kernel threw: E: # keys");
  EXPECT_EQ(place(Hazard::Kind::kRaised), "the kernel raised E: # keys");
  EXPECT_EQ(place(Hazard::Kind::kNoReply), "the kernel's process sent no sound reply");
  using enum Violation::Kind;
  const auto memory = [](Violation::Kind kind) {
    return symptom_of(Violation{.kind = kind, .buffer = "k.0", .first = 4, .count = 2}).where;
  };
  EXPECT_EQ(memory(kInput), "k.#: # bytes of an input written");
  EXPECT_EQ(memory(kDeadOutput), "k.#: # bytes outside the live output written");
  EXPECT_EQ(memory(kPastEnd), "k.#: guard byte # past its end written");
  EXPECT_EQ(memory(kBeforeStart), "k.#: guard byte # before its start written");
}

} // namespace
} // namespace assay
