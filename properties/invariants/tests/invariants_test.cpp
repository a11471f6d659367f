// SPDX-License-Identifier: Apache-2.0
// Every invariant accepts the reference kernels and rejects a kernel with the defect it is meant
// for.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "kernels/simt/asan.h"
#include "properties/case/case_text.h"
#include "properties/case/codec.h"
#include "properties/case/problem_gen.h"
#include "properties/invariants/invariants.h"
#include "properties/run/requirements.h"
#include "properties/run/runner.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

using reference::Bug;
using reference::WithBug;

struct Tally {
  int passed = 0, failed = 0, discarded = 0, undecided = 0;
  std::string first;
  Symptom symptom; // symptom of the first failure
};

/// Draws until `cases` were decided, or a failure when `until_failure`.
Tally run_property(const Property &property, const assay_kernel &kernel, int cases,
                   bool until_failure) {
  Tally tally;
  auto sut = make_simt_sut(kernel);
  Limits limits = fuzz_limits();
  for (uint64_t seed = 0; seed < 4000 && tally.passed + tally.failed < cases; ++seed) {
    Problem p = draw_problem(limits, sut->family(), 9000 + seed);
    CheckResult r = property.check(p, *sut);
    tally.passed += r.passed();
    tally.failed += r.failed();
    tally.discarded += r.kind == CheckResult::Kind::kDiscard;
    tally.undecided += r.kind == CheckResult::Kind::kUndecided;
    if (r.failed() && tally.first.empty()) tally.symptom = r.symptom;
    if (r.failed() && tally.first.empty())
      tally.first = r.message + "\n" + r.detail + format_problem(p);
    if (r.failed() && until_failure) break;
  }
  return tally;
}

class ReferencePasses : public testing::TestWithParam<const assay_kernel *> {};

TEST_P(ReferencePasses, EveryProperty) {
  const assay_kernel &kernel = *GetParam();
  for (const Property &property : properties()) {
    if (!applies(property, kernel)) continue;
    constexpr int kCases = ASSAY_ASAN ? 8 : 25;
    Tally tally = run_property(property, kernel, kCases, false);
    EXPECT_EQ(tally.failed, 0) << property.name << ": " << tally.first;
    EXPECT_EQ(tally.undecided, 0) << property.name;
    EXPECT_EQ(tally.passed, kCases) << property.name << " ran too few cases";
  }
}

std::vector<const assay_kernel *> reference_list() {
  std::vector<const assay_kernel *> list;
  for (const assay_kernel &kernel : kernels_in(reference::plugin()))
    list.push_back(&kernel);
  return list;
}
INSTANTIATE_TEST_SUITE_P(, ReferencePasses, testing::ValuesIn(reference_list()),
                         [](const auto &info) { return std::string(info.param->name); });

struct Control {
  const char *property, *kernel;
  Bug bug;
};

class WrongKernel : public testing::TestWithParam<Control> {};

TEST_P(WrongKernel, IsCaught) {
  const Control &c = GetParam();
  const Property *property = find_property(c.property);
  ASSERT_NE(property, nullptr);
  WithBug defect(c.bug);
  Tally tally = run_property(*property, reference::kernel(c.kernel), 400, true);
  EXPECT_GE(tally.failed, 1) << c.property << " did not see bug " << static_cast<int>(c.bug)
                             << " in " << tally.passed << " cases";
  // Without its cause as data a finding belongs to no group.
  EXPECT_NE(tally.symptom.kind, Symptom::Kind::kNone) << tally.first;
  EXPECT_TRUE(tally.symptom.of_element() || !tally.symptom.where.empty() ||
              tally.symptom.kind == Symptom::Kind::kNotEmpty)
      << tally.first;
}

const Control kControls[] = {
    {"within_budget", "reference_v1", Bug::kMissingRescale},
    {"within_budget", "reference_merge_states", Bug::kFirstTwice},
    {"poison_untouched", "reference_v1", Bug::kLateMask},
    {"poison_untouched", "reference_v1", Bug::kStrayWrite},
    {"poison_untouched", "reference_v2", Bug::kReadsWorkspace},
    {"poison_untouched", "reference_merge_state", Bug::kNoInfGuard},
    {"run_to_run", "reference_v1", Bug::kCallCounter},
    {"run_to_run", "reference_merge_state", Bug::kCallCounter},
    {"call_sequence", "reference_v1", Bug::kCallCounter},
    {"call_sequence", "reference_merge_states", Bug::kCallCounter},
    {"schedule_independence", "reference_v1", Bug::kScheduleDependent},
    {"pdl_equals_plain", "reference_v1", Bug::kQueriesTooEarly},
    {"schedule_independence", "reference_merge_states", Bug::kScheduleDependent},
    {"nan_containment", "reference_v1", Bug::kNanLeak},
    {"nan_containment", "reference_merge_state", Bug::kNanLeak},
    {"nan_reaches_outputs", "reference_v1", Bug::kNanScoresDropped},
    {"nan_reaches_outputs", "reference_v2", Bug::kNanScoresDropped},
    {"nan_reaches_outputs", "reference_v1", Bug::kNanValuesDropped},
    {"nan_reaches_outputs", "reference_merge_state", Bug::kNanScoresDropped},
    {"batch_independence", "reference_v1", Bug::kBatchOrder},
    {"batch_independence", "reference_merge_state", Bug::kBatchOrder},
    {"head_permutation", "reference_v1", Bug::kFixedKvHead},
    {"head_permutation", "reference_merge_state", Bug::kFixedKvHead},
    {"constant_v", "reference_v1", Bug::kRowSumDropsKey},
    {"v_affine", "reference_v1", Bug::kClampedV},
    {"score_shift", "reference_v1", Bug::kMaxFromZero},
    {"score_shift", "reference_merge_states", Bug::kMaxOfFirst},
    {"page_permutation", "reference_v1", Bug::kAscendingPages},
    {"page_remap", "reference_v1", Bug::kSkipsRepeatedPages},
    {"page_size_invariance", "reference_v1", Bug::kDropsLastSlot},
    {"gqa_equals_mha", "reference_v1", Bug::kHeadRemainder},
    {"key_permutation", "reference_v1", Bug::kMissingRescale},
    {"key_duplication", "reference_v1", Bug::kLseWithoutSum},
    {"extreme_scores_finite", "reference_v1", Bug::kNoMax},
    {"zero_query_counts_keys", "reference_v1", Bug::kDropsLastKey},
    {"dyadic_exact", "reference_v1", Bug::kDropsLastKey},
    {"dyadic_exact", "reference_v1", Bug::kShortLog2e},
    {"dyadic_exact", "reference_cascade", Bug::kUnweightedSplits},
    {"algebra_exact", "reference_v1", Bug::kDropsLastKey},
    {"algebra_exact", "reference_v1", Bug::kTinyNormaliser},
    {"algebra_exact", "reference_v1", Bug::kLseInBase2},
    {"algebra_exact", "reference_merge_states", Bug::kFirstTwice},
    {"any_partition_count", "reference_v2", Bug::kUnweightedSplits},
    {"more_partitions_than_keys", "reference_v2", Bug::kEmptySplitCounts},
    {"within_budget", "reference_v1", Bug::kNoSoftcap},
    {"within_budget", "reference_v1", Bug::kAlibiOffByOne},
    {"within_budget", "reference_v1", Bug::kWindowOffByOne},
    {"within_budget", "reference_v1", Bug::kNotCausal},
    {"within_budget", "reference_v1", Bug::kScaleOfHeadZero},
    {"within_budget", "reference_v2", Bug::kSinkPerSplit},
    {"zero_query_counts_keys", "reference_v1", Bug::kAlibiOffByOne},
    {"zero_query_counts_keys", "reference_v1", Bug::kWindowOffByOne},
    {"zero_query_counts_keys", "reference_v1", Bug::kNotCausal},
    {"zero_query_counts_keys", "reference_v2", Bug::kSinkPerSplit},
    {"any_partition_count", "reference_v2", Bug::kSinkPerSplit},
    {"head_permutation", "reference_v1", Bug::kScaleOfHeadZero},
    {"q_len_equals_decode", "reference_v1", Bug::kNotCausal},
    {"ragged_equals_alone", "reference_v1", Bug::kRaggedAsFull},
    {"ragged_equals_alone", "reference_v2", Bug::kRaggedAtFirst},
    {"within_budget", "reference_v1", Bug::kRaggedAsFull},
    {"poison_untouched", "reference_v1", Bug::kRaggedAtFirst},
    {"page_lists_equal_table", "reference_v1", Bug::kListOfHeadZero},
    {"page_lists_equal_table", "reference_cascade", Bug::kListOfHeadZero},
    {"page_lists_equal_table", "reference_v2", Bug::kListOfHeadZero},
    {"shards_equal_whole", "reference_v1", Bug::kShardByIndex},
    {"shards_equal_whole", "reference_v2", Bug::kShardLocalLength},
    {"within_budget", "reference_v1", Bug::kShardByIndex},
    {"within_budget", "reference_v2", Bug::kShardLocalLength},
    {"window_hides", "reference_v1", Bug::kWindowLateMask},
    {"window_hides", "reference_v1", Bug::kWindowOffByOne},
    {"sink_equals_key", "reference_v1", Bug::kSinkIgnored},
    {"sink_equals_key", "reference_v2", Bug::kSinkPerSplit},
    {"fp8_equals_widened", "reference_v1", Bug::kScaleOfHeadZero},
    {"fp8_equals_widened", "reference_v1", Bug::kNanIs480},
    {"cascade_equals_flat", "reference_cascade", Bug::kPrefixTwice},
    {"merge_identity", "reference_merge_state", Bug::kNoInfGuard},
    {"merge_commutative", "reference_merge_state", Bug::kMaxOfFirst},
    {"merge_associative", "reference_merge_state", Bug::kMeanLse},
    {"merge_any_tree", "reference_merge_states", Bug::kMeanLse},
    {"merge_any_order", "reference_merge_states", Bug::kFirstTwice},
    {"merge_in_place", "reference_merge_state", Bug::kWritesEarly},
    // The reference kernels check nothing, and do not say that they do.
    {"bad_calls_refused", "reference_v1", Bug::kNone},
    {"bad_calls_refused", "reference_merge_states", Bug::kNone},
    {"limits_kept", "reference_v1", Bug::kNone},
    {"limits_kept", "reference_cascade", Bug::kNone},
    {"limits_kept", "reference_merge_states", Bug::kNone},
};
INSTANTIATE_TEST_SUITE_P(, WrongKernel, testing::ValuesIn(kControls), [](const auto &info) {
  return std::string(info.param.property) + "_" + info.param.kernel + "_" +
         std::to_string(static_cast<int>(info.param.bug));
});

/// Writes an LSE of 0 for each request without keys.
assay_status zero_for_empty_rows(const void *params) {
  const assay_status status = reference::kernel("reference_v1").run(params);
  const auto &p = *static_cast<const assay_paged_params *>(params);
  for (int row = 0; row < p.batch; ++row)
    if (p.kv.seq_lens[row] == 0) p.lse[row * p.lse_stride_batch] = 0;
  return status;
}

// Where certain bits are due there is no interval, and the message names none.
/// A right kernel that is batch-invariant and cuts rows by the capacity of the page table, as where
/// a graph is captured for it: a parameter of the call.
assay_paged_params cut_by_capacity(const void *params) {
  assay_paged_params p = *static_cast<const assay_paged_params *>(params);
  if (p.num_splits == 0) p.num_splits = 1 + p.kv.max_pages % 5;
  return p;
}

TEST(Controls, ARightKernelMayCutByTheCapacityOfTheTable) {
  assay_kernel kernel = reference::kernel("reference_v2");
  kernel.run = [](const void *params) -> assay_status {
    const assay_paged_params p = cut_by_capacity(params);
    return reference::kernel("reference_v2").run(&p);
  };
  kernel.workspace_size = [](const void *params, uint64_t *bytes) -> assay_status {
    const assay_paged_params p = cut_by_capacity(params);
    return reference::kernel("reference_v2").workspace_size(&p, bytes);
  };
  const Tally t = run_property(*find_property("batch_independence"), kernel, 60, false);
  EXPECT_EQ(t.failed, 0) << t.first;
  EXPECT_GE(t.passed, 60);
}

/// Reads keys 64 to 79 of each request where keys 0 to 15 lie: they differ in nothing but how often
/// head_dim goes into their number.
assay_status displaces_a_page(const void *params) {
  assay_paged_params p = *static_cast<const assay_paged_params *>(params);
  std::vector<int32_t> table(p.kv.page_table, p.kv.page_table + p.kv.max_pages);
  if (table.size() > 4) table[4] = table[0];
  p.kv.page_table = table.data();
  return reference::kernel("reference_v1").run(&p);
}

TEST(Controls, AKeyDisplacedByAMultipleOfHeadDimIsSeen) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.run = displaces_a_page;
  Problem p = decode_family({}, full_limits(), Family::kPaged);
  p.page_size = 16;
  p.seq_lens = {100};
  const auto sut = make_simt_sut(kernel), right = make_simt_sut(reference::kernel("reference_v1"));
  EXPECT_TRUE(zero_query_counts_keys(p, *right).passed());
  EXPECT_TRUE(zero_query_counts_keys(p, *sut).failed());
}

TEST(Messages, OfARowWithoutKeysSayWhatIsDue) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.run = zero_for_empty_rows;
  Problem p;
  p.seq_lens = {0};
  const auto sut = make_simt_sut(kernel);
  const CheckResult result = find_property("within_budget")->check(p, *sut);
  EXPECT_EQ(result.message, "row 0 head 0 lse is 0: the LSE of a row without keys must be -inf");
  EXPECT_EQ(result.detail.find("+-"), std::string::npos) << result.detail;
}

// dyadic_exact rests on it: the base-2 scale is a power of two whichever way it is computed.
TEST(Controls, DyadicScaleIsExact) {
  Problem p;
  p.scale = ScaleKind::kDyadic;
  EXPECT_EQ(sm_scale(p) * 1.44269504088896f, 0.125f);
  EXPECT_EQ(static_cast<float>(sm_scale(p) * 1.4426950408889634), 0.125f);
}

// Defects within every bound, or in rows that nothing else poisons: one property stands alone.
TEST(Controls, SomeAreSeenByOnePropertyOnly) {
  for (const Control &c : {Control{"nan_containment", "reference_v1", Bug::kNanLeak},
                           Control{"nan_containment", "reference_cascade", Bug::kNanLeak},
                           Control{"batch_independence", "reference_v1", Bug::kBatchOrder}}) {
    WithBug defect(c.bug);
    for (const Property &property : properties()) {
      const assay_kernel &kernel = reference::kernel(c.kernel);
      if (!applies(property, kernel)) continue;
      bool alone = std::string(c.property) == property.name;
      Tally tally = run_property(property, kernel, alone ? 400 : 15, alone);
      EXPECT_EQ(tally.failed, alone ? 1 : 0) << property.name << ": " << tally.first;
    }
  }
}

// Every bound computed from a declared NaN is NaN, from infinity infinite: whatever fails under the
// honest declaration would pass.
TEST(Controls, NoDeclarationMakesAWrongKernelPass) {
  using A = assay_arithmetic;
  for (const Control &c : {Control{"within_budget", "reference_v1", Bug::kDropsLastKey},
                           Control{"dyadic_exact", "reference_v1", Bug::kShortLog2e},
                           Control{"key_duplication", "reference_v1", Bug::kDropsLastKey},
                           Control{"within_budget", "reference_merge_states", Bug::kFirstTwice},
                           Control{"merge_any_order", "reference_merge_states", Bug::kFirstTwice}})
    for (double A::*field : {&A::exp2_rel_error, &A::log2_abs_error, &A::rcp_rel_error})
      for (double declared : {double(NAN), double(INFINITY), -1.0}) {
        WithBug defect(c.bug);
        assay_kernel kernel = reference::kernel(c.kernel);
        kernel.arithmetic.*field = declared;
        auto honest = make_simt_sut(reference::kernel(c.kernel)), sut = make_simt_sut(kernel);
        int wrong = 0;
        for (uint64_t seed = 0; seed < 60 && wrong < 3; ++seed) {
          const Problem p = draw_problem(fuzz_limits(), sut->family(), 9000 + seed);
          const Property &property = *find_property(c.property);
          if (!checked(property, p, *honest, nullptr).failed()) continue;
          ++wrong;
          bool refused = false;
          const CheckResult r = checked(property, p, *sut, &refused);
          EXPECT_TRUE(refused) << c.property << " under " << declared << ": " << r.message;
        }
        EXPECT_GT(wrong, 0) << c.property;
      }
}

TEST(Controls, EveryPropertyHasOne) {
  for (const Property &property : properties()) {
    if (property.needs & kKeyOrder) continue; // no reference declares one: bugs_test
    bool found = false;
    for (const Control &c : kControls)
      found |= std::string(c.property) == property.name;
    EXPECT_TRUE(found) << property.name << " has never caught anything";
  }
}

} // namespace
} // namespace assay
