// SPDX-License-Identifier: Apache-2.0
// Every known-wrong kernel of corpus/mutants is caught by a property, and the same kernels with no
// mutant active are not: a detector that has never caught anything is no evidence.
#include "corpus/mutants/mutants.h"
#include "properties/kill_matrix.h"
#include "properties/registry.h"
#include "properties/runner.h"
#include "properties/sut/sut.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace assay {
namespace {

constexpr int kCasesPerProperty = 60;

bool concerns(const mutants::Mutant &mutant, const assay_kernel &kernel) {
  const std::string list = std::string(mutant.kernels) + ",";
  return list.find(std::string(kernel.name) + ",") != std::string::npos;
}

/// Draw `index`, moved into what the mutant build instantiates.
Problem draw(const Property &property, const assay_kernel &kernel, uint64_t index) {
  RunnerOptions options;
  options.seed = 20261120;
  Problem p = draw_case(property, kernel, options, index);
  if (is_attention(p)) {
    p.dtype = Dtype::kBf16;
    p.head_dim = 64;
  }
  return p;
}

/// "property: message" of the first failure over all properties, or empty.
std::string first_failure(const assay_kernel &kernel, int cases, int *checked_cases) {
  const std::unique_ptr<Sut> sut = make_simt_sut(kernel);
  for (int i = 0; i < cases; ++i)
    for (const Property &property : properties()) {
      if (!applies(property, kernel)) continue;
      const Problem p = draw(property, kernel, i);
      if (!problem_error(p, full_limits()).empty()) continue;
      bool threw = false;
      const CheckResult result = checked(property, p, *sut, &threw);
      if (threw) return std::string(property.name) + " threw: " + result.message;
      if (result.kind != CheckResult::Kind::kDiscard) ++*checked_cases;
      if (result.failed()) return std::string(property.name) + ": " + result.message;
    }
  return "";
}

class Mutants : public testing::TestWithParam<mutants::Mutant> {};

TEST_P(Mutants, is_caught) {
  const mutants::Mutant &mutant = GetParam();
  const mutants::Activate active(mutant.id);
  int kernels = 0;
  for (int k = 0; k < mutants::plugin()->num_kernels; ++k) {
    const assay_kernel &kernel = mutants::plugin()->kernels[k];
    if (!concerns(mutant, kernel)) continue;
    ++kernels;
    int cases = 0;
    const std::string failure = first_failure(kernel, kCasesPerProperty, &cases);
    EXPECT_NE(failure, "") << mutant.name << " survives in " << kernel.name << " after " << cases
                           << " cases: " << mutant.why;
    if (!failure.empty())
      std::printf("  %-24s %-20s case %4d  %s\n", mutant.name, kernel.name, cases,
                  failure.substr(0, 120).c_str());
  }
  EXPECT_GT(kernels, 0) << "no kernel named '" << mutant.kernels << "'";
}

INSTANTIATE_TEST_SUITE_P(all, Mutants,
                         testing::ValuesIn(mutants::all().begin(), mutants::all().end()),
                         [](const auto &info) { return std::string(info.param.name); });

// The control: the instrumented kernels with no mutant active pass the very same cases.
TEST(MutantControl, unmutated_kernels_pass) {
  for (int k = 0; k < mutants::plugin()->num_kernels; ++k) {
    int cases = 0;
    EXPECT_EQ(first_failure(mutants::plugin()->kernels[k], 20, &cases), "");
    EXPECT_GT(cases, 20) << mutants::plugin()->kernels[k].name;
  }
}

std::vector<KillSubject> all_of(const char *name) {
  std::vector<KillSubject> out;
  for (int k = 0; k < mutants::plugin()->num_kernels; ++k) {
    const assay_kernel &kernel = mutants::plugin()->kernels[k];
    if (std::string(kernel.name) != name) continue;
    out.push_back({0, "(correct)", "", &kernel});
    for (const mutants::Mutant &m : mutants::all())
      if (concerns(m, kernel)) out.push_back({m.id, m.name, m.why, &kernel});
  }
  return out;
}

// On plain N(0,1) inputs: what our checks see, and that the correct kernel is never accused.
TEST(KillMatrix, sees_every_mutant_and_no_correct_kernel) {
  for (const char *name : {"paged_attention_v1", "paged_attention_v2", "cascade_attention",
                           "merge_state", "merge_states"}) {
    const auto subjects = all_of(name);
    ASSERT_GT(subjects.size(), 1u) << name;
    const auto rows =
        kill_matrix(subjects, [](int id) { mutants::active_id = id; }, {.runs = 2, .seed = 20});
    for (const KillRow &row : rows) {
      const int killed = row.killed[kAnyOfOurs];
      if (row.subject.id == 0)
        EXPECT_EQ(killed, 0) << name;
      else
        EXPECT_GT(killed, 0) << name << " " << row.subject.name << ": " << row.subject.why;
    }
  }
}

// Exact numbers see every mistake that changes the function, and no rounding.
TEST(KillMatrix, algebra_sees_all_but_rounding) {
  const std::set<std::string> rounding = {"exp2_coarse", "o_rounded_per_tile", "output_truncated",
                                          "p_in_4_bits", "scores_in_bf16",     "(correct)"};
  for (const char *name : {"paged_attention_v1", "paged_attention_v2", "cascade_attention",
                           "merge_state", "merge_states"}) {
    int judged = 0;
    for (const KillRow &row : kill_matrix(all_of(name), [](int id) { mutants::active_id = id; },
                                          {.runs = 1, .seed = 23})) {
      judged += row.judged[kAlgebra];
      const int expected = rounding.count(row.subject.name) ? 0 : row.judged[kAlgebra];
      EXPECT_EQ(row.killed[kAlgebra], expected) << name << " " << row.subject.name;
    }
    EXPECT_GE(judged, 2) << name;
  }
}

// The matrix judges what runs, not what it is told: never activated, no mutant is seen by anything.
TEST(KillMatrix, counts_nothing_for_correct_kernels) {
  for (const KillRow &row :
       kill_matrix(all_of("paged_attention_v2"), [](int) {}, {.runs = 1, .seed = 21}))
    for (int c = 0; c < kKillColumns; ++c)
      EXPECT_EQ(row.killed[c], 0) << row.subject.name << " " << kKillColumnNames[c];
}

// The reason for each check of ours: without it, these would pass.
TEST(KillMatrix, precision_mistakes_need_the_replay) {
  for (const KillRow &row :
       kill_matrix(all_of("paged_attention_v2"), [](int id) { mutants::active_id = id; },
                   {.runs = 2, .seed = 22})) {
    if (row.subject.name != "p_in_4_bits" && row.subject.name != "output_truncated") continue;
    EXPECT_EQ(row.killed[kClose2], 0);
    EXPECT_EQ(row.killed[kLse], 0);
    EXPECT_EQ(row.killed[kTier1], row.runs) << row.subject.name;
  }
}

TEST(MutantControl, there_are_at_least_ten) { EXPECT_GE(mutants::all().size(), 10u); }

} // namespace
} // namespace assay
