// SPDX-License-Identifier: Apache-2.0
// `assay mutants --default-draw` and `--usual-rules`.
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

TEST_F(Cli, DefaultDrawSaysWhatSeesAMutant) {
  Ran r = assay_program({"mutants", "--default-draw", "--mutant", "merge_takes_empty_side",
                         "--threads", "1", "--json", path("m")});
  EXPECT_EQ(r.code, kExitPass) << r.err;
  EXPECT_NE(r.out.find("1 of 1 seen by the draws of check, seed 1"), std::string::npos) << r.out;
  const auto row = json("m")["rows"][0];
  EXPECT_EQ(row["kernel"], "merge_state");
  EXPECT_EQ(row["property"], "within_budget");
}

TEST_F(Cli, DefaultDrawPassesKernelsWithNoMutant) {
  Ran r = assay_program({"mutants", "--default-draw", "--mutant", "(correct)", "--kernel",
                         "merge_state", "--threads", "1", "--json", path("m")});
  EXPECT_EQ(r.code, kExitPass) << r.err;
  EXPECT_NE(r.out.find("passes"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("0 of 0 seen by the draws of check, seed 1"), std::string::npos) << r.out;
  EXPECT_FALSE(json("m")["rows"][0].contains("property"));
}

TEST_F(Cli, DefaultDrawRefusesWhatIsNotThere) {
  Ran r = assay_program(
      {"mutants", "--default-draw", "--mutant", "output_truncated", "--kernel", "merge_state"});
  expect_error(r, kExitUsage, "no mutant concerns merge_state");
  expect_error(assay_program({"mutants", "--default-draw", "--mutant", "nope"}), kExitUsage,
               "--mutant 'nope': no such mutant");
}

/// A wrong O is rejected, and a wrong LSE beside a right O is not, whatever was judged before it;
/// right kernels pass but for 1e-3, which the rounding of an output in bf16 may exceed.
TEST_F(Cli, UsualRulesSeeLargeErrorsOfOutputsAlone) {
  Ran r = assay_program({"mutants", "--usual-rules", "--mutant", "(correct)",
                         "merge_takes_empty_side", "pair_lse_in_base_two", "--kernel",
                         "merge_state", "--threads", "1", "--json", path("m")});
  EXPECT_EQ(r.code, kExitPass) << r.err;
  const auto rows = json("m")["rows"];
  ASSERT_EQ(rows.size(), 3u);
  for (const auto &row : rows) {
    EXPECT_GE(row["cases"], 400);
    EXPECT_TRUE(row["ended"].empty());
    for (const char *rule : {"1e-2", "98%"})
      EXPECT_EQ(row["rejected"][rule].empty(), row["mutant"] != "merge_takes_empty_side")
          << row["mutant"] << rule;
    EXPECT_TRUE(row["rejected"]["2x"].empty()); // the rule is for attention alone
  }
}

} // namespace
} // namespace assay
