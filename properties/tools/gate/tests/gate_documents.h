// SPDX-License-Identifier: Apache-2.0
// Documents of `gate` made by hand: every kind of line at once, in words that other languages read.
#pragma once

#include <string>

#include "properties/tools/gate/reports.h"
#include "properties/tools/report/tests/report_documents.h"

namespace assay::gate {

inline json line_json(const std::string &id, const std::string &kernel, bool acceptable) {
  return {
      {"id", id},
      {"text", report::kHostile},
      {"kernel", kernel},
      {"acceptable", acceptable},
      {"file", acceptable ? "" : "build/gate/findings/a b.case"},
      {"reproduce", acceptable ? "" : "build/simt/assay replay 'build/gate/findings/a b.case'"}};
}

inline json classed(const std::string &state, bool red) {
  const json always = {{"runs", 3}, {"fails", 3}}, never = {{"runs", 3}, {"fails", 0}};
  return {{"state", state},
          {"red", red},
          {"kernel", "k<1>"},
          {"property", "within_budget"},
          {"properties", {"within_budget", "run_to_run"}},
          {"message", report::kHostile},
          {"how_far", "off by 0.5, 13 times what is allowed"},
          {"cause", "outside, o, needs several tiles"},
          {"fingerprint", "0123456789abcdef"},
          {"case", "assay-case 1\nend\n"},
          {"file", state == "known" ? "" : "build/gate/findings/a b.case"},
          {"reproduce", "build/simt/assay replay 'build/gate/findings/a b.case'"},
          {"base", state == "new" || state == "flaky" ? never : always},
          {"head", state == "fixed" ? never : always}};
}

inline json kernel(const std::string &name, bool touched) {
  return {{"name", name},
          {"touched", touched},
          {"cases", 640},
          {"base_cases", 640},
          {"new", 2},
          {"known", 1},
          {"fixed", 1},
          {"flaky", 1},
          {"error_o", {{"base", 0.25}, {"head", 17.5}}},
          {"error_lse", {{"base", 0.0}, {"head", 0.0}}}};
}

/// Blocked, with two lines of one id about one kernel and two about the change.
inline json document() {
  return {{"version", "0.1.0"},
          {"mode", "own"},
          {"target", "simt"},
          {"seed", 1},
          {"seconds", 83.5},
          {"complete", true},
          {"exit", 1},
          {"base", {{"name", "main"}, {"commit", "0123456789abcdef"}}},
          {"head", {{"name", "working tree"}, {"commit", ""}}},
          {"plan", {{"kind", "kernels"}}},
          {"red",
           {line_json("judge-changed", "", true), line_json("judge-changed", "", true),
            line_json("new-finding", "k<1>", false), line_json("new-finding", "k<1>", false),
            line_json("error-grew", "k<1>", true)}},
          {"accepted", json::array({line_json("figures", "plain_kernel", true)})},
          {"findings",
           {classed("new", true), classed("known", false), classed("fixed", false),
            classed("flaky", true)}},
          {"errors", json::array()},
          {"checks", json::array({{{"base", report::passing()}, {"head", report::document()}}})},
          {"kernels", {kernel("k<1>", true), kernel("a_kernel_of_a_rather_long_name_v2", false)}},
          {"notes", {report::kHostile, "the budget ended with the short run"}},
          {"failures", json::array()}};
}

/// The harness of a change that touches no kernel did not run.
inline json undecided() {
  json d = document();
  d["exit"] = 4;
  d["plan"] = {{"kind", "mutants"}};
  for (const char *key : {"red", "accepted", "findings", "kernels", "notes", "checks"})
    d[key] = json::array();
  d["failures"] = {report::kHostile, "base: assay check ended with 4: no word"};
  return d;
}

} // namespace assay::gate
