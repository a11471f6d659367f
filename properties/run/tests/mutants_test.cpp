// SPDX-License-Identifier: Apache-2.0
// Every known-wrong kernel of corpus/mutants is caught by a property, and the same kernels with no
// mutant active are not: a detector that has never caught anything is no evidence.
#include "kernels/abi/kernel_table.h"
#include "kernels/plan/host_plan.h"
#include "properties/run/kill_matrix.h"
#include "properties/run/tests/killers.h"
#include "properties/run/tests/mutant_cases.h"

#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>

namespace assay {
namespace mutants {
void PrintTo(const Mutant &mutant, std::ostream *out) { *out << mutant.name; }
} // namespace mutants

namespace {

constexpr int kRounds = 60;
constexpr DrawOptions kDraws = {.aim = true};

/// They may divide by zero.
bool of_the_plan(const mutants::Mutant &mutant) {
  return std::string(mutant.file).find("kernels/plan/") == 0;
}

class Mutants : public testing::TestWithParam<mutants::Mutant> {};

TEST_P(Mutants, is_caught) {
  const mutants::Mutant &mutant = GetParam();
  const mutants::Activate active(mutant.id);
  int kernels = 0;
  for (const assay_kernel &kernel : kernels_in(*mutants::plugin())) {
    if (!concerns(mutant, kernel.name)) continue;
    ++kernels;
    const std::unique_ptr<Sut> sut = mutant_sut(kernel, of_the_plan(mutant));
    DrawnFailure failure = recorded_failure(mutant, kernel, *sut, kDraws);
    if (failure.property == nullptr) failure = first_failure(kernel, *sut, kRounds, kDraws);
    ASSERT_NE(failure.property, nullptr) << mutant.name << " survives in " << kernel.name
                                         << " after " << failure.cases << " cases: " << mutant.why;
    std::printf("%s\n", failure.message.substr(0, 160).c_str());
    // The row of corpus/mutants/killers.csv.
    std::printf("killer %s,%s,%s,%llu\n", mutant.name, kernel.name, failure.property->name,
                static_cast<unsigned long long>(failure.index));
  }
  EXPECT_GT(kernels, 0) << "no kernel named '" << mutant.kernels << "'";
}

INSTANTIATE_TEST_SUITE_P(all, Mutants,
                         testing::ValuesIn(mutants::all().begin(), mutants::all().end()),
                         [](const auto &info) { return std::string(info.param.name); });

// An edited kernel builds without the mutants whose text it changed; it does not pass CI so.
TEST(MutantTable, every_mutant_is_compiled) {
  for (const char *name : mutants::omitted())
    ADD_FAILURE() << name << " is not compiled: its text is no longer in the kernels";
}

// The instrumented planner and that of the library, which declares the key order, are two.
TEST(MutantTable, mutants_of_the_plan_leave_the_library_alone) {
  const std::vector<int32_t> lens = {900, 0, 1, 300, 513, 64, 0, 128, 257};
  const SplitPlanShape shape{static_cast<int32_t>(lens.size()), 2, 0, 4, 128, 0};
  const HostPlan right(shape, lens.data());
  const std::string bytes(static_cast<const char *>(right.data()), right.bytes());
  int count = 0;
  for (const mutants::Mutant &mutant : mutants::all()) {
    if (!of_the_plan(mutant)) continue;
    ++count;
    const mutants::Activate active(mutant.id);
    const HostPlan plan(shape, lens.data());
    EXPECT_EQ(std::string(static_cast<const char *>(plan.data()), plan.bytes()), bytes)
        << mutant.name;
  }
  EXPECT_GT(count, 10);
}

// The control: the instrumented kernels with no mutant active pass the very same cases, of which
// this runs every third.
TEST(MutantControl, unmutated_kernels_pass_what_shows_mutants) {
  std::set<std::pair<std::string, Killer>> cases;
  for (const auto &[key, killer] : killers())
    cases.insert({key.second, killer});
  EXPECT_GT(cases.size(), 60u);
  int number = 0;
  for (const auto &[name, killer] : cases) {
    if (number++ % 3 != 0) continue;
    const assay_kernel *kernel = mutants::find_kernel(name);
    ASSERT_NE(kernel, nullptr) << name;
    const std::unique_ptr<Sut> sut = mutant_sut(*kernel, false);
    const DrawnFailure failure = failure_at(*killer.property, *kernel, *sut, killer.index, kDraws);
    EXPECT_EQ(failure.message, "") << name << " " << killer.property->name << " " << killer.index;
    EXPECT_EQ(failure.cases, 1) << name << " " << killer.property->name << " " << killer.index;
  }
}

std::vector<KillSubject> all_of(const char *name) {
  std::vector<KillSubject> out;
  for (const assay_kernel &kernel : kernels_in(*mutants::plugin())) {
    if (std::string(kernel.name) != name) continue;
    out.push_back({0, "(correct)", "", &kernel});
    for (const mutants::Mutant &m : mutants::all())
      if (concerns(m, kernel.name) && !m.needs_features)
        out.push_back({m.id, m.name, m.why, &kernel});
  }
  return out;
}

void expect_seen(const KillRow &row) {
  const int killed = row.killed[kAnyOfOurs];
  if (row.subject.id == 0)
    EXPECT_EQ(killed, 0) << row.subject.kernel->name;
  else
    EXPECT_GT(killed, 0) << row.subject.kernel->name << " " << row.subject.name << ": "
                         << row.subject.why;
}

// Exact numbers see every mistake that changes the function, and no rounding: a weight has no low
// part there.
void expect_algebra_sees_all_but_rounding(const KillRow &row) {
  const std::set<std::string> rounding = {
      "exp2_coarse",   "o_rounded_per_tile",   "output_truncated",
      "p_in_4_bits",   "scores_in_bf16",       "small_p_truncated",
      "low_part_lost", "low_part_of_partials", "low_part_without_queries",
      "(correct)"};
  const int expected = rounding.contains(row.subject.name) ? 0 : row.judged[kAlgebra];
  EXPECT_EQ(row.killed[kAlgebra], expected) << row.subject.kernel->name << " " << row.subject.name;
}

// What is wrong with the order between blocks shows on every schedule: values are right here.
bool expect_order_is_no_matter_of_luck(const KillRow &row) {
  const std::set<std::string> unordered = {"counter_relaxed",         "counter_acquires_only",
                                           "counter_releases_only",   "counter_in_block_scope",
                                           "counter_without_barrier", "last_block_without_barrier"};
  if (!unordered.contains(row.subject.name)) return false;
  EXPECT_EQ(row.killed[kHazards], row.runs) << row.subject.name;
  return true;
}

// The reason for the replay: without it, these would pass.
bool expect_precision_mistakes_need_the_replay(const KillRow &row) {
  if (row.subject.name != "p_in_4_bits" && row.subject.name != "output_truncated") return false;
  EXPECT_EQ(row.killed[kClose2], 0) << row.subject.name;
  EXPECT_EQ(row.killed[kLse], 0) << row.subject.name;
  EXPECT_EQ(row.killed[kTier1], row.runs) << row.subject.name;
  return true;
}

// On plain N(0,1) inputs: what our checks see, and that the correct kernel is never accused.
TEST(KillMatrix, sees_every_mutant_and_no_correct_kernel) {
  for (const std::string name : {"paged_attention_v1", "paged_attention_v2", "cascade_attention",
                                 "merge_state", "merge_states"}) {
    const auto subjects = all_of(name.c_str());
    ASSERT_GT(subjects.size(), 1u) << name;
    int by_algebra = 0, unordered = 0, imprecise = 0;
    for (const KillRow &row :
         kill_matrix(subjects, [](int id) { mutants::active_id = id; }, {.runs = 2, .seed = 20})) {
      expect_seen(row);
      expect_algebra_sees_all_but_rounding(row);
      by_algebra += row.judged[kAlgebra];
      if (name != "paged_attention_v2") continue;
      unordered += expect_order_is_no_matter_of_luck(row);
      imprecise += expect_precision_mistakes_need_the_replay(row);
    }
    EXPECT_GE(by_algebra, 2) << name;
    if (name != "paged_attention_v2") continue;
    EXPECT_EQ(unordered, 6);
    EXPECT_EQ(imprecise, 2);
  }
}

// The matrix judges what runs, not what it is told: never activated, no mutant is seen by anything.
TEST(KillMatrix, counts_nothing_for_correct_kernels) {
  for (const KillRow &row :
       kill_matrix(all_of("paged_attention_v2"), [](int) {}, {.runs = 1, .seed = 21}))
    for (int c = 0; c < kKillColumns; ++c)
      EXPECT_EQ(row.killed[c], 0) << row.subject.name << " " << kKillColumnNames[c];
}

// No check of ours is decoration: for each there is a wrong kernel that passes everything else, the
// exact numbers left aside: they see most of it, but exist on the executor only, while the others
// judge a device too.
struct Only {
  KillColumn column;
  const char *mutant, *kernel;
  bool replay_scores = true;
};
constexpr Only kOnly[] = {
    // Merges have no key order, so no replay, and this leaves the LSE right.
    {kTier0, "merge_takes_empty_side", "merge_state"},
    // Where T2 applies it sees what T1 sees, sharper. T1 is what is left where it does not.
    {kTier1, "p_in_4_bits", "paged_attention_v2", false},
    {kTier2, "small_p_truncated", "paged_attention_v2"},
    {kLse, "lse_scale_in_bf16", "paged_attention_v1"},
    {kDyadic, "o_off_by_2_14", "paged_attention_v1"},
    {kAlgebra, "merge_normaliser_one_ulp", "paged_attention_v2"},
    {kHazards, "dead_slot_copied", "paged_attention_v2"},
};

TEST(KillMatrix, every_check_is_needed) {
  std::set<int> needed;
  for (const Only &only : kOnly) {
    const mutants::Mutant *mutant = mutants::find(only.mutant);
    ASSERT_NE(mutant, nullptr) << only.mutant;
    const KillSubject subject{mutant->id, mutant->name, mutant->why,
                              mutants::find_kernel(only.kernel)};
    const auto rows = kill_matrix(
        {subject}, [](int id) { mutants::active_id = id; },
        {.runs = 4, .keys = 4093, .splits = 8, .seed = 23, .replay_scores = only.replay_scores});
    for (int c = kTier0; c < kAnyOfOurs; ++c) {
      if (c == only.column) {
        EXPECT_GT(rows[0].killed[c], 0) << only.mutant;
      } else if (c != kAlgebra) {
        EXPECT_EQ(rows[0].killed[c], 0) << only.mutant << " " << kKillColumnNames[c];
      }
    }
    needed.insert(only.column);
  }
  for (int c = kTier0; c < kAnyOfOurs; ++c)
    EXPECT_TRUE(needed.contains(c)) << kKillColumnNames[c] << ": nothing shows that it is needed";
}

// A kernel that declares no key order, as a third party's may: no T1, no T2. What the order-free
// bound, the relations, the known values and the executor still see, and what they do not. Plain
// attention: where a sink takes nearly all the mass, every weight is small, and truncating them all
// leaves even the order-free bound.
TEST(NoDeclaredOrder, at_most_a_mistake_of_rounding_survives) {
  assay_kernel kernel = *mutants::find_kernel("paged_attention_v2");
  kernel.key_order = nullptr;
  // Without its low part P is as good as rounded once, which is all that the order-free bound asks.
  // Whether these are seen depends on the draws, which show them where fp32 sums are compared bit
  // for bit.
  const std::set<std::string> of_rounding = {"small_p_truncated", "low_part_lost",
                                             "low_part_without_queries"};
  std::set<std::string> survivors;
  for (const mutants::Mutant &mutant : mutants::all()) {
    if (!concerns(mutant, kernel.name) || mutant.needs_features) continue;
    if (of_rounding.contains(mutant.name)) continue;
    const mutants::Activate active(mutant.id);
    const DrawnFailure failure =
        first_failure(kernel, *mutant_sut(kernel, false), 10, {.plain = true});
    if (failure.property == nullptr) survivors.insert(mutant.name);
  }
  EXPECT_EQ(survivors, std::set<std::string>());
}

TEST(MutantControl, there_are_at_least_ten) { EXPECT_GE(mutants::all().size(), 10u); }

} // namespace
} // namespace assay
