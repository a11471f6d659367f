// SPDX-License-Identifier: Apache-2.0
// JUnit XML and SARIF of a gate.
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/gate/reports.h"
#include "properties/tools/report/document.h"
#include "properties/tools/report/escape.h"

namespace assay::gate {
namespace {

using report::markup;
using report::text_of;

struct Test {
  std::string name, failure; ///< failure empty: it passed
};

/// Readers of JUnit take two tests of one name for one test: the second of a name is "NAME (2)".
void number(std::vector<Test> &tests) {
  std::map<std::string, int> seen;
  for (Test &test : tests)
    if (const int n = ++seen[test.name]; n > 1) test.name += fmt::format(" ({})", n);
}

std::string red_words(const json &line) {
  std::string out = text_of(line, "text");
  for (const char *key : {"file", "reproduce"})
    if (const std::string text = text_of(line, key); !text.empty())
      out += fmt::format("\n{}: {}", key, text);
  return out;
}

std::string suite(const std::string &name, std::vector<Test> tests) {
  number(tests);
  std::string body;
  int failures = 0;
  for (const Test &test : tests) {
    body += fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"0\"", markup(test.name),
                        markup(name));
    failures += !test.failure.empty();
    body += test.failure.empty()
                ? "/>\n"
                : fmt::format("><failure message=\"{0}\" type=\"{1}\">{0}</failure></testcase>\n",
                              markup(test.failure), markup(test.name));
  }
  return fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
                     "skipped=\"0\" time=\"0\">\n{}  </testsuite>\n",
                     markup(name), tests.size(), failures, body);
}

/// SARIF's word for where a finding stands between two runs.
std::string baseline(const std::string &state) {
  return state == "known" ? "unchanged" : state == "fixed" ? "absent" : "new";
}

json message(const std::string &text) { return {{"text", text}}; }

/// Code scanning takes no result without a file: where no case shows it, what says which kernels
/// there are.
json locations(const json &document, const json &of) {
  const std::string mode = text_of(document, "mode");
  std::string file = text_of(of, "file");
  if (file.empty()) {
    if (mode == "own") file = "kernels/api/kernels.def";
    if (mode == "plugin") file = "assay.toml";
    if (mode == "libraries") file = text_of(document.at("head"), "name");
  }
  const json place = {{"artifactLocation", {{"uri", report::file_uri(file)}}},
                      {"region", {{"startLine", 1}}}};
  return json::array({{{"physicalLocation", place}}});
}

json sarif_result(const json &document, const json &f) {
  return {{"ruleId", text_of(f, "property")},
          {"level", f.at("red").get<bool>() ? "error" : "note"},
          {"baselineState", baseline(text_of(f, "state"))},
          {"message", message(fmt::format("{} {}: {}", text_of(f, "kernel"), text_of(f, "property"),
                                          text_of(f, "message")))},
          {"partialFingerprints", {{"assayCause/v1", text_of(f, "fingerprint")}}},
          {"locations", locations(document, f)},
          {"properties",
           {{"state", text_of(f, "state")},
            {"cause", text_of(f, "cause")},
            {"case", text_of(f, "case")},
            {"reproduce", text_of(f, "reproduce")}}}};
}

json sarif_result_of_line(const json &document, const json &line) {
  const std::string kernel = text_of(line, "kernel");
  return {{"ruleId", text_of(line, "id")},
          {"level", "error"},
          {"baselineState", "new"},
          {"message", message((kernel.empty() ? "" : kernel + " ") + text_of(line, "text"))},
          {"locations", locations(document, line)}};
}

bool of_finding(const json &line) { return text_of(line, "id").ends_with("-finding"); }

} // namespace

std::string junit(const json &document) {
  std::vector<Test> change;
  std::map<std::string, std::vector<Test>> kernels;
  for (const json &kernel : document.at("kernels"))
    kernels[text_of(kernel, "name")] = {};
  for (const json &line : document.at("red")) {
    auto &tests = text_of(line, "kernel").empty() ? change : kernels[text_of(line, "kernel")];
    tests.push_back({text_of(line, "id"), red_words(line)});
  }
  for (const json &why : document.at("failures"))
    change.push_back({"gate", why.get<std::string>()});
  if (change.empty()) change.push_back({"guarded lines", ""});
  std::string body = suite("change", change);
  for (auto &[name, tests] : kernels) {
    if (tests.empty()) tests.push_back({"no new finding", ""});
    body += suite(name, tests);
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites name=\"assay gate\" time=\"{:.3f}\">\n{}</testsuites>\n",
                     document.at("seconds").get<double>(), body);
}

std::string sarif(const json &document) {
  json results = json::array(), rules = json::array();
  std::set<std::string> ids;
  for (const json &f : document.at("findings"))
    results.push_back(sarif_result(document, f));
  for (const json &line : document.at("red"))
    if (!of_finding(line)) results.push_back(sarif_result_of_line(document, line));
  for (const json &result : results)
    if (ids.insert(text_of(result, "ruleId")).second)
      rules.push_back({{"id", text_of(result, "ruleId")}});
  const int exit = document.at("exit").get<int>();
  json notifications = json::array();
  for (const json &why : document.at("failures"))
    notifications.push_back({{"level", "error"}, {"message", message(why.get<std::string>())}});
  const json invocation = {{"executionSuccessful", exit == 0 || exit == 1},
                           {"exitCode", exit},
                           {"toolExecutionNotifications", notifications}};
  const json tool = {
      {"driver", {{"name", "assay"}, {"version", text_of(document, "version")}, {"rules", rules}}}};
  const json one = {
      {"tool", tool}, {"invocations", json::array({invocation})}, {"results", results}};
  return json({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
               {"version", "2.1.0"},
               {"runs", json::array({one})}})
             .dump(2) +
         "\n";
}

} // namespace assay::gate
