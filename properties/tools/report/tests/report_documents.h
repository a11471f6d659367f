// SPDX-License-Identifier: Apache-2.0
// Documents of `check` made by hand: what no quick run shows, in words that other languages read.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"

namespace assay::report {

inline constexpr const char *kHostile =
    "</script><script>alert(1)</script>\"'>&]]> `x` | @team #1 **b** [a](http://b)\n~~~\n```";

inline json finding(const std::string &kernel, const std::string &property, size_t group) {
  return {{"kernel", kernel},
          {"property", property},
          {"message", kHostile},
          {"how_far", "off by 0.5, 13 times what is allowed"},
          {"detail", "budget: weights 0\n"},
          {"cause", {{"error", "hazard"}, {"text", "hazard: misaligned at kernels/a.cuh:31"}}},
          {"fingerprint", "0123456789abcdef"},
          {"differs", {"k_layout = hnd", "q_len = 2"}},
          {"group", group},
          {"failing_cases", 3},
          {"cases", 40},
          {"shrunk", {{"steps", 3}, {"tried", 9}, {"exhausted", false}}},
          {"drawn_by", "assay check --seed 7"},
          {"file", "findings/a b.case"},
          {"reproduce", "assay replay 'findings/a b.case'"},
          {"case", "assay-case 1\nend\n"}};
}

/// Cases by their error over bound: small, near to 1 and beyond.
inline std::vector<int> bins(int small, int near, int beyond) {
  std::vector<int> out(21);
  out[0] = small, out[19] = near, out[20] = beyond;
  return out;
}

inline json run(const std::string &property, json changes = json::object()) {
  json out = {{"kernel", "k<1>"},
              {"property", property},
              {"cases", 40},
              {"findings", 0},
              {"undecided", 0},
              {"discarded", 0},
              {"started", true},
              {"seconds", 0.25},
              {"hollow", false},
              {"errors", {{"o", bins(3, 4, 1)}, {"lse", bins(7, 1, 0)}}},
              {"classes", {{"plain", 30}}},
              {"missing", json::array()},
              {"outside", json::array()},
              {"last_discard", ""},
              {"error", ""}};
  out.update(changes);
  return out;
}

/// One kernel, two findings of one group (the first a hazard with a line), every kind of gap.
inline json document() {
  json found = json::array({finding("k<1>", "within_budget", 0), finding("k<1>", "run_to_run", 0)});
  found[0]["cause"]["source"] = {{"file", "kernels/a.cuh"}, {"line", 31}};
  return {{"version", "1.2"},
          {"target", "simt"},
          {"seed", 7},
          {"seconds", 3.25},
          {"cases", 120},
          {"undecided", 0},
          {"exit", 1},
          {"ended", ""},
          {"found", found},
          {"groups", json::array({{{"kernel", "k<1>"},
                                   {"found", 0},
                                   {"fingerprint", "0123456789abcdef"},
                                   {"properties", {"within_budget", "run_to_run"}}}})},
          {"properties", json::array({{{"name", "within_budget"}, {"statement", "every O & LSE"}},
                                      {{"name", "run_to_run"}, {"statement", "twice"}}})},
          {"runs", json::array({run("within_budget"), run("run_to_run"), run("constant_v"),
                                run("window_hides", {{"outside", {"window"}}, {"cases", 0}}),
                                run("key_duplication", {{"missing", {"fp8"}}}),
                                run("v_affine", {{"started", false}, {"cases", 0}})})},
          {"kernels",
           json::array(
               {{{"name", "k<1>"},
                 {"cases", 120},
                 {"findings", 6},
                 {"undecided", 0},
                 {"outputs", 4000},
                 {"certified_rows", 5},
                 {"nan_contract", {"values"}},
                 {"envelope", json::object()},
                 {"envelope_text", json::array()},
                 {"not_covered", json::array()},
                 {"classes", {"plain", "window", "fp8"}},
                 {"gaps", json::array()},
                 {"median_budget", 0.004},
                 {"worst",
                  {{"ratio_t0", 1.5}, {"ratio_t1", 0}, {"ratio_t2", 0}, {"ratio_lse", 0.5}}}}})},
          {"replayed", {{"results", json::array()}, {"ledger", json::array()}}}};
}

inline json passing() {
  json d = document();
  d["exit"] = 0;
  d["found"] = d["groups"] = json::array();
  d["runs"] = json::array({run("within_budget")});
  return d;
}

} // namespace assay::report
