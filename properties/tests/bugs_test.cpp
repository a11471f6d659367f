// SPDX-License-Identifier: Apache-2.0
// Every known bug of corpus/bugs is found by a draw of `assay check`, and the kernel without it
// passes the same case.
#include "corpus/bugs/kernels.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "properties/run/draw.h"
#include "properties/run/probe.h"
#include "properties/run/requirements.h"
#include "properties/run/runner.h"
#include "properties/tests/bug_rows.h"

namespace assay {

void PrintTo(const BugRow &row, std::ostream *out) { *out << row.name; }

namespace {

const std::vector<BugRow> &bug_rows() {
  static const auto rows = read_bug_rows(ASSAY_BUGS);
  return rows;
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

/// As `assay check --plugin --threads 1` has them.
RunnerOptions options_of(const assay_kernel &kernel) {
  RunnerOptions options;
  options.threads = 1;
  options.isolate = !processes_need_one_thread(); // some divide by zero, some never end
  if (const Envelope &e = envelope_of(kernel); !e.fields.empty()) options.envelopes[&kernel] = e;
  options.shrink = {.checks = 0, .seconds = 0};
  return options;
}

Problem recorded_case(const BugRow &row, const Property &property, const assay_kernel &kernel) {
  return draw_case(property, kernel, options_of(kernel), std::stoull(row.draw));
}

/// The row with what the draws of check show first; "none" where that is nothing.
BugRow searched(BugRow row, const assay_kernel &kernel) {
  std::vector<const Property *> all;
  for (const Property &property : properties())
    all.push_back(&property);
  std::atomic<bool> failed = false;
  RunnerOptions options = options_of(kernel);
  options.found = [&](const PropertyRun &) { failed = true; };
  options.stop = &failed;
  const RunSummary summary = run_properties({&kernel}, all, options, nullptr);
  row.property = "none";
  row.draw.clear();
  row.cases = std::to_string(summary.cases());
  row.seconds = fmt::format("{:.1f}", summary.seconds);
  for (const PropertyRun &run : summary.runs) {
    if (run.first.empty()) continue;
    row.property = run.property->name;
    row.draw = std::to_string(run.first[0].index);
    std::printf("%s\n", run.first[0].result.message.substr(0, 200).c_str());
  }
  return row;
}

class Bugs : public testing::TestWithParam<BugRow> {};

TEST_P(Bugs, is_found) {
  const BugRow &row = GetParam();
  const assay_kernel *kernel = bugs::find_kernel(row.name);
  ASSERT_NE(kernel, nullptr) << row.name;
  if (row.recorded()) {
    const Property *property = find_property(row.property);
    ASSERT_NE(property, nullptr) << row.property;
    const auto sut = make_process_sut(*kernel);
    if (checked(*property, recorded_case(row, *property, *kernel), *sut, nullptr).failed()) return;
  } else if (row.property == "none") {
    GTEST_SKIP() << "known to survive: properties/measured/others.md";
  }
  const BugRow found = searched(row, *kernel);
  std::printf("row %s\n", csv(found).c_str());
  EXPECT_NE(found.property, "none") << row.name << " survives " << found.cases << " cases";
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
    if (!row.recorded()) continue;
    const Property *property = find_property(row.property);
    const assay_kernel *wrong = bugs::find_kernel(row.name), *right = bugs::right_kernel(row.name);
    ASSERT_TRUE(property != nullptr && wrong != nullptr && right != nullptr) << row.name;
    const auto sut = make_simt_sut(*right);
    const CheckResult result =
        checked(*property, recorded_case(row, *property, *wrong), *sut, nullptr);
    EXPECT_TRUE(result.passed()) << row.name << ": " << result.message;
    passed += result.passed();
  }
  EXPECT_GT(passed, 40);
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
    EXPECT_FALSE(row.property.empty()) << row.name << " is not recorded";
  }
  for (int i = 0; i < bugs::plugin().num_kernels; ++i) {
    const char *name = bugs::plugin().kernels[i].name;
    EXPECT_EQ(bugs::right_kernel(name) != nullptr, names.contains(name)) << name;
  }
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
