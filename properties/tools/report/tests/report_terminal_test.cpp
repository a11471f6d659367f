// SPDX-License-Identifier: Apache-2.0
// How `check` reports its findings, on a terminal and in a file.
#include "properties/tools/report/terminal.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/tests/report_documents.h"

namespace assay::report {
namespace {

TEST(Report, TerminalHasAllThatIsKnownOfAFinding) {
  json d = document();
  d["found"][1]["unwritten"] = "findings: cannot write";
  const std::string text = terminal(d, {});
  for (const char *part :
       {"\nFINDING k<1> within_budget: ",
        "  off by 0.5, 13 times what is allowed\n"
        "  cause: hazard: misaligned at kernels/a.cuh:31 [0123456789abcdef]\n"
        "  differs from the simplest case in: k_layout = hnd, q_len = 2\n"
        "  reproduce: assay replay 'findings/a b.case'\n"
        "  explain:   assay explain 'findings/a b.case'\n"
        "  drawn by:  assay check --seed 7\n"
        "  also seen by: run_to_run\n  3 of 40 cases fail; shrunk in 3 steps (9 tried)\n",
        "  findings: cannot write; the case:\nassay-case 1\nend\n",
        "NaN need not reach the outputs of k<1> (scores)\n", "\nFAIL: 120 cases, "})
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
}

// Elements by the dozen, with the same budget, are what `explain` is for.
TEST(Report, TerminalHasOneElementOfAFinding) {
  const std::string text = terminal(document(), {});
  EXPECT_EQ(text.find("budget: weights 0"), text.npos);
}

TEST(Report, TerminalBreaksSentencesBetweenWordsAndFields) {
  json d = document();
  std::string long_word(70, 'x');
  d["found"][0]["message"] = "row 0 " + long_word + " is wrong\n  | what a worker printed";
  d["found"][0]["differs"] = {"page_size = 16", "seq_lens = 17", "k_layout = hnd", "q_len = 2"};
  const std::string text = terminal(d, {.columns = 80});
  EXPECT_NE(text.find("\n    " + long_word + " is\n    wrong\n  | what a worker printed\n"),
            text.npos)
      << text;
  EXPECT_NE(text.find("  differs from the simplest case in: page_size = 16, seq_lens = 17,\n"
                      "    k_layout = hnd, q_len = 2\n"),
            text.npos)
      << text;
  EXPECT_NE(terminal(d, {}).find("seq_lens = 17, k_layout"), std::string::npos);
}

TEST(Report, WhatFailsAfterOtherCallsIsReproducedByItsDraw) {
  json d = document();
  d["found"][0]["differs"] = json::array();
  d["found"][0]["shrunk"] = {{"steps", 0}, {"tried", 0}, {"exhausted", false}};
  d["found"][0]["reproduce"] = d["found"][0]["drawn_by"];
  const std::string text = terminal(d, {});
  EXPECT_NE(text.find("  reproduce: assay check --seed 7\n  also seen by"), text.npos) << text;
  EXPECT_NE(text.find("cases fail; not shrunk\n"), text.npos) << text;
}

} // namespace
} // namespace assay::report
