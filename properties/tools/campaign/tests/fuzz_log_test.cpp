// SPDX-License-Identifier: Apache-2.0
// What a campaign reads of a fuzzer's output, and what it estimates.
#include <array>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/tools/campaign/fuzz_log.h"
#include "properties/tools/campaign/residual.h"
#include "properties/tools/campaign/totals.h"

namespace assay::campaign {
namespace {

TEST(FuzzLog, ReadsStatisticsAndWhatEndedIt) {
  const FuzzLog good =
      read_fuzz_log("#2\tINITED cov: 3 ft: 4\n#900\tNEW cov: 70 ft: 80 corp: 1/2b\n"
                    "stat::number_of_executed_units: 1234\n");
  EXPECT_EQ(good.executions, 1234u);
  EXPECT_EQ(good.features, 80u);
  EXPECT_EQ(good.edges, 70u);
  EXPECT_EQ(good.message, "");
  EXPECT_EQ(
      read_fuzz_log("###### Recommended dictionary. ######\n\"Test unit written to x\" # Uses: 3\n"
                    "###### End of recommended dictionary. ######\n")
          .message,
      "")
      << "words of inputs";
  EXPECT_EQ(read_fuzz_log("#9\tREDUCE cov: 7 ft: 8 MS: 1 CMP- DE: \"Test unit written to \"-\n"
                          "#11\tNEW cov: 7 ft: 8 DE: \"###### Recommended dictionary\"-\n"
                          "#12\tNEW cov: 7 ft: 9 MS: 1 CMP- DE: \"runtime error: \"-\n"
                          "###### Recommended dictionary. ######\n"
                          "\"Test unit written to \" # Uses: 56\n"
                          "###### End of recommended dictionary. ######\n")
                .message,
            "")
      << "words of inputs in lines of progress";
  EXPECT_EQ(read_fuzz_log(
                "Slowest unit: 14 s:\nartifact_prefix='a/'; Test unit written to a/slow-unit-1\n")
                .message,
            "")
      << "an input that took long, and passed";
  EXPECT_EQ(read_fuzz_log("#2\tINITED\n#777\tREDUCE cov: 1").executions, 777u) << "cut off";
  const FuzzLog hang =
      read_fuzz_log("SUMMARY: libFuzzer: timeout\nTest unit written to a/timeout-1\n");
  EXPECT_EQ(hang.message, "SUMMARY: libFuzzer: timeout");
  EXPECT_EQ(hang.artifact, "a/timeout-1");
  EXPECT_EQ(finding_key("t", "row 12 is 0x1f, at 3.5e-7"),
            finding_key("t", "row 9 is 0xab, at 1.25e-3"));
  EXPECT_NE(finding_key("t", "row 1 is lost"), finding_key("t", "head 1 is lost"));
}

TEST(FuzzLog, KeepsPointsThatDivideTheRun) {
  std::string text = "#2\tINITED cov: 3 ft: 4\n";
  for (int i = 10; i <= 1000; i += 10)
    text +=
        "#" + std::to_string(i) + "\tNEW cov: 5 ft: " + std::to_string(100 + i) + " corp: 1/2b\n";
  const FuzzLog log = read_fuzz_log(text + "stat::number_of_executed_units: 1000\n");
  ASSERT_EQ(log.progress.size(), 7u);
  EXPECT_EQ(log.progress.front(), (std::pair<uint64_t, uint64_t>(240, 340)))
      << "of the second eighth";
  EXPECT_EQ(log.progress.back(), (std::pair<uint64_t, uint64_t>(990, 1090)));
  EXPECT_EQ(log.features, 1100u);
  EXPECT_TRUE(
      read_fuzz_log("#5\tNEW cov: 5\nstat::number_of_executed_units: 9\n").progress.empty());
  EXPECT_TRUE(read_fuzz_log("#5\tNEW ft: 5\n#0\tNEW ft: 1\n").progress.empty()) << "cut off";
}

TEST(Totals, PointsOfASliceLieWithinIt) {
  using nlohmann::json;
  const auto slice = [](uint64_t features, const json &progress) {
    return json{{"end", "fuzz_tile"},
                {"seconds", 10.0},
                {"executions", 100},
                {"features", features},
                {"progress", progress}};
  };
  const Totals totals = add_up({slice(50, {{50, 20}, {75, 40}}),
                                slice(60, {{25, 45}, {400, 99}, {50, 55}}), slice(60, "edited")});
  std::vector<std::array<double, 3>> points;
  for (const Point &p : totals.tasks.at("fuzz_tile").growth)
    points.push_back(
        {p.seconds, static_cast<double>(p.executions), static_cast<double>(p.features)});
  const std::vector<std::array<double, 3>> expected = {
      {5, 50, 20},   {7.5, 75, 40}, {10, 100, 50}, {12.5, 125, 50},
      {15, 150, 55}, {20, 200, 60}, {30, 300, 60}};
  EXPECT_EQ(points, expected) << "never fewer than were seen, never beyond the slice";
}

std::vector<std::set<std::string>> samples_of(int runs, int species_a_run, int rare_every) {
  std::vector<std::set<std::string>> out(static_cast<size_t>(runs));
  for (int i = 0; i < runs; ++i) {
    for (int s = 0; s < species_a_run; ++s)
      out[static_cast<size_t>(i)].insert("common" + std::to_string(s));
    if (rare_every > 0 && i % rare_every == 0)
      out[static_cast<size_t>(i)].insert("rare" + std::to_string(i));
  }
  return out;
}

TEST(Residual, IsNoEstimateWhereItDoesNotHold) {
  EXPECT_NE(residual(samples_of(19, 3, 4)).why_none, "");
  const Residual r = residual(samples_of(100, 30, 4));
  EXPECT_EQ(r.why_none, "");
  EXPECT_DOUBLE_EQ(r.expected, 0.25); // a new one every fourth run
  EXPECT_LT(r.low, 0.25);
  EXPECT_GT(r.high, 0.25);
  // Everything twice, in runs side by side: seen once nowhere, but by pairs always.
  std::vector<std::set<std::string>> twice;
  for (int i = 0; i < 60; ++i)
    twice.push_back({"pair" + std::to_string(i / 2)});
  EXPECT_NE(residual(twice).why_none, "");
  EXPECT_EQ(residual(samples_of(100, 5, 0)).expected, 0);
  EXPECT_DOUBLE_EQ(residual(samples_of(100, 5, 0)).high, 0.03);
}

} // namespace
} // namespace assay::campaign
