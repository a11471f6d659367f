// SPDX-License-Identifier: Apache-2.0
// Every wrong kernel of corpus/bugs is found by a draw of `assay check`, every one of corpus/calls
// at three seeds, and the kernels without the mistakes pass the same cases.
#include "corpus/bugs/kernels.h"
#include "corpus/calls/kernels.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "kernels/abi/kernel_table.h"
#include "properties/run/draw.h"
#include "properties/run/probe.h"
#include "properties/run/requirements.h"
#include "properties/run/runner.h"
#include "properties/run/tests/bug_rows.h"

namespace assay {

void PrintTo(const BugRow &row, std::ostream *out) { *out << row.name; }

namespace {

const std::vector<BugRow> &bug_rows() {
  static const auto rows = [] {
    std::vector<BugRow> out = read_bug_rows(ASSAY_BUGS), calls = read_bug_rows(ASSAY_WRONG_CALLS);
    out.insert(out.end(), calls.begin(), calls.end());
    return out;
  }();
  return rows;
}

bool is_wrong_call(const std::string &name) { return wrong_calls::find_kernel(name) != nullptr; }

const assay_kernel *wrong_kernel(const BugRow &row) {
  return is_wrong_call(row.name) ? wrong_calls::find_kernel(row.name) : bugs::find_kernel(row.name);
}
const assay_kernel *right_kernel(const BugRow &row) {
  return is_wrong_call(row.name) ? &own_kernel(row.kernel) : bugs::right_kernel(row.name);
}

/// Asked once: what a wrong kernel takes its right one takes.
const Envelope &envelope_of(const assay_kernel &kernel) {
  static std::map<std::string_view, Envelope> known;
  const assay_kernel *right = bugs::right_kernel(kernel.name);
  if (right == nullptr) right = &kernel;
  const auto [at, is_new] = known.try_emplace(right->name);
  if (is_new) at->second = probe_envelope(*right, false);
  return at->second;
}

/// As `assay check --plugin --threads 1` has them; kernels of ours take every case.
RunnerOptions options_of(const assay_kernel &kernel, uint64_t seed = 1) {
  RunnerOptions options;
  options.seed = seed;
  options.threads = 1;
  // Some divide by zero, some never end, and what a kernel remembers must end with it.
  options.isolate = !processes_need_one_thread();
  if (!is_wrong_call(kernel.name))
    if (const Envelope &e = envelope_of(kernel); !e.fields.empty()) options.envelopes[&kernel] = e;
  options.shrink = {.checks = 0, .seconds = 0};
  return options;
}

CheckResult check_shown(const Shown &shown, uint64_t seed, const assay_kernel &drawn_for,
                        Sut &sut) {
  const Property *property = find_property(shown.property);
  if (property == nullptr) throw std::out_of_range(shown.property);
  return checked(
      *property,
      draw_case(*property, drawn_for, options_of(drawn_for, seed), std::stoull(shown.draw)), sut,
      nullptr);
}
/// In a process without earlier calls.
bool shows(const Shown &shown, uint64_t seed, const assay_kernel &kernel) {
  return check_shown(shown, seed, kernel, *make_process_sut(kernel)).failed();
}

/// What the draws of check show first; "none" where that is nothing.
Shown searched(const assay_kernel &kernel, uint64_t seed,
               const std::vector<const Property *> &properties, BugRow &row) {
  std::atomic<bool> failed = false;
  RunnerOptions options = options_of(kernel, seed);
  options.found = [&](const PropertyRun &) { failed = true; };
  options.stop = &failed;
  const RunSummary summary = run_properties({&kernel}, properties, options, nullptr);
  row.cases = std::to_string(summary.cases());
  row.seconds = fmt::format("{:.1f}", summary.seconds);
  for (const PropertyRun &run : summary.runs) {
    if (run.first.empty()) continue;
    std::printf("  %s\n", run.first[0].result.message.substr(0, 200).c_str());
    return {run.property->name, std::to_string(run.first[0].index)};
  }
  return {"none", ""};
}

/// A draw that shows the kernel alone. What it remembers of earlier draws is shown by sequences.
Shown searched(const assay_kernel &kernel, uint64_t seed, BugRow &row) {
  std::vector<const Property *> all;
  for (const Property &property : properties())
    all.push_back(&property);
  const Shown first = searched(kernel, seed, all, row);
  if (first.property == "none" || shows(first, seed, kernel)) return first;
  return searched(kernel, seed, {find_property("call_sequence")}, row);
}

class Bugs : public testing::TestWithParam<BugRow> {};

TEST_P(Bugs, is_found) {
  BugRow row = GetParam();
  const assay_kernel *kernel = wrong_kernel(row);
  ASSERT_NE(kernel, nullptr) << row.name;
  if (row.survives()) GTEST_SKIP() << "known to survive: properties/measured/others.md";
  const std::vector<Shown> recorded = row.shown;
  row.shown.resize(is_wrong_call(row.name) ? 3 : 1);
  bool is_new = false;
  for (uint64_t seed = 1; seed <= row.shown.size(); ++seed) {
    Shown &shown = row.shown[seed - 1];
    if (seed <= recorded.size() && shows(recorded[seed - 1], seed, *kernel)) continue;
    is_new = true;
    shown = searched(*kernel, seed, row);
    EXPECT_NE(shown.property, "none")
        << row.name << " survives " << row.cases << " cases of seed " << seed << ": " << row.cause;
  }
  if (is_new) std::printf("row %s\n", csv(row).c_str());
}

std::vector<BugRow> own_kernels() {
  std::vector<BugRow> out;
  for (const BugRow &row : bug_rows())
    if (!row.is_mutant()) out.push_back(row);
  return out;
}
INSTANTIATE_TEST_SUITE_P(all, Bugs, testing::ValuesIn(own_kernels()),
                         [](const auto &info) { return info.param.name; });

// The control: what shows a bug is the bug.
TEST(BugControl, right_kernels_pass_what_shows_bugs) {
  int passed = 0;
  for (const BugRow &row : own_kernels()) {
    const assay_kernel *wrong = wrong_kernel(row), *right = right_kernel(row);
    ASSERT_TRUE(wrong != nullptr && right != nullptr) << row.name;
    const auto sut = make_simt_sut(*right);
    for (uint64_t seed = 1; row.recorded() && seed <= row.shown.size(); ++seed) {
      const CheckResult result = check_shown(row.shown[seed - 1], seed, *wrong, *sut);
      EXPECT_TRUE(result.passed()) << row.name << ": " << result.message;
      passed += result.passed();
    }
  }
  EXPECT_GT(passed, 200);
}

// Without a mistake of ours in the kernels that the bugs stand in.
TEST(BugControl, right_kernels_pass_ordinary_draws) {
  constexpr uint64_t kDraws = 3;
  for (const char *name : {"right_paged", "right_sharded", "right_staged", "right_merge_state",
                           "right_merge_states"}) {
    const assay_kernel &kernel = *bugs::find_kernel(name);
    const RunnerOptions options = options_of(kernel);
    const auto sut = make_simt_sut(kernel);
    int passed = 0;
    for (const Property &property : properties())
      for (uint64_t draw = 0; draw < kDraws && applies(property, kernel); ++draw) {
        const CheckResult result =
            checked(property, draw_case(property, kernel, options, draw), *sut, nullptr);
        EXPECT_FALSE(result.failed()) << name << " " << property.name << ": " << result.message;
        passed += result.passed();
      }
    EXPECT_GT(passed, 15) << name;
  }
}

TEST(BugControl, all_but_one_right_kernel_take_every_case) {
  for (const char *name : {"right_merge_state", "right_merge_states"})
    EXPECT_TRUE(probe_envelope(*bugs::find_kernel(name), false).fields.empty()) << name;
  // It does not declare that it knows ragged queries or shards.
  for (const auto &[field, values] :
       probe_envelope(*bugs::find_kernel("right_paged"), false).fields)
    EXPECT_TRUE(field == "query_tokens" || field == "foreign_tokens") << field;
  EXPECT_GT(probe_envelope(*bugs::find_kernel("right_staged"), false).fields.size(), 1u);
}

TEST(BugTable, has_a_row_for_every_wrong_kernel) {
  std::set<std::string> names;
  for (const BugRow &row : bug_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_FALSE(row.reports.empty() || row.cause.empty()) << row.name;
    EXPECT_FALSE(row.shown.empty()) << row.name << " is not recorded";
  }
  for (const assay_kernel &kernel : kernels_in(bugs::plugin()))
    EXPECT_EQ(bugs::right_kernel(kernel.name) != nullptr, names.contains(kernel.name))
        << kernel.name;
  for (const assay_kernel &kernel : kernels_in(wrong_calls::plugin()))
    EXPECT_TRUE(names.contains(kernel.name)) << kernel.name;
}

// Its draws alone; where they show none, those of within_budget do (calls.csv).
TEST(DeclaredOrder, shows_wrong_orders_alone) {
  int orders = 0, shown = 0;
  for (BugRow row : own_kernels()) {
    if (row.name.rfind("order_of_", 0) != 0) continue;
    ++orders;
    for (uint64_t seed = 1; seed <= 3; ++seed)
      shown +=
          searched(*wrong_kernel(row), seed, {find_property("declared_order")}, row).property !=
          "none";
  }
  EXPECT_EQ(orders, 8);
  EXPECT_GE(shown, 23) << "of 24";
}

// What they share a mistake with is replayed by mutants_test.
TEST(BugTable, names_mutants_that_are_there) {
  for (const BugRow &row : bug_rows())
    if (row.is_mutant())
      EXPECT_TRUE(std::filesystem::exists(std::string(ASSAY_MUTANTS) + "/" + row.name + ".mutant"))
          << row.name;
}

} // namespace
} // namespace assay
