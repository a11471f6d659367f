// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/junit.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"
#include "properties/tools/report/escape.h"

namespace assay::report {
namespace {

struct Suite {
  std::string name, cases;
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
};

/// One test; `inside`: what it contains, empty for a pass.
void add(Suite &suite, const std::string &name, double seconds, const std::string &inside) {
  ++suite.tests;
  suite.seconds += seconds;
  suite.cases += fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3f}\"",
                             markup(name), markup(suite.name), seconds);
  suite.cases += inside.empty() ? "/>\n" : ">" + inside + "</testcase>\n";
}

std::string element(const char *tag, const std::string &message, const std::string &type,
                    const std::string &text) {
  return fmt::format("<{0} message=\"{1}\" type=\"{2}\">{3}</{0}>", tag, markup(message),
                     markup(type), markup(text));
}

/// All that is known of a finding.
std::string text_of_finding(const json &document, const json &found) {
  const json &group = document.at("groups").at(found.at("group").get<size_t>());
  std::string text = text_of(found, "message") + "\n";
  if (const std::string far = text_of(found, "how_far"); !far.empty()) text += far + "\n";
  text += fmt::format("cause: {} [{}]\n", text_of(found.at("cause"), "text"),
                      text_of(group, "fingerprint"));
  text +=
      fmt::format("seen by: {}\n", joined(group.at("properties").get<std::vector<std::string>>()));
  text += text_of(found, "detail");
  if (const std::string line = text_of(found, "reproduce"); !line.empty())
    text += "reproduce: " + line + "\n";
  return text + "\n" + text_of(found, "case");
}

const json *found_of(const json &document, const json &run) {
  for (const json &found : document.at("found"))
    if (found.at("kernel") == run.at("kernel") && found.at("property") == run.at("property"))
      return &found;
  return nullptr;
}

std::string skip(const std::string &why) {
  return fmt::format("<skipped message=\"{}\"/>", markup(why));
}

void add_run(Suite &suite, const json &document, const json &run,
             const std::vector<Gap> &all_gaps) {
  const std::string name = text_of(run, "property");
  const double seconds = run.at("seconds").get<double>();
  if (const json *found = found_of(document, run)) {
    ++suite.failures;
    return add(suite, name, seconds,
               element("failure", text_of(*found, "message"), text_of(found->at("cause"), "error"),
                       text_of_finding(document, *found)));
  }
  if (!run.at("started").get<bool>()) {
    ++suite.skipped;
    return add(suite, name, seconds, skip("not run"));
  }
  for (const Gap &gap : all_gaps) {
    if (gap.kernel != suite.name || gap.property != name) continue;
    ++suite.errors;
    return add(suite, name, seconds, element("error", gap.text, "incomplete", gap.text));
  }
  if (run.at("cases").get<int>() > 0) return add(suite, name, seconds, "");
  ++suite.skipped;
  add(suite, name, seconds, skip("nothing to say: " + text_of(run, "last_discard")));
}

/// What concerns a kernel as a whole is a test of its own.
void add_kernel_gaps(Suite &suite, const std::vector<Gap> &all_gaps) {
  for (const Gap &gap : all_gaps)
    if (gap.kernel == suite.name && gap.property.empty() && !gap.unstarted) {
      ++suite.errors;
      add(suite, "(whole kernel)", 0, element("error", gap.text, "incomplete", gap.text));
    }
}

Suite kept_suite(const json &document) {
  Suite suite;
  suite.name = "kept findings";
  for (const json &r : document.at("replayed").at("results")) {
    const std::string verdict = text_of(r, "verdict"), message = text_of(r, "message");
    const std::string name =
        fmt::format("{}: {} {}", text_of(r, "file"), text_of(r, "kernel"), text_of(r, "property"));
    std::string inside;
    if (verdict == "FAIL") {
      ++suite.failures;
      inside = element("failure", message, "kept", message);
    } else if (verdict == "UNDECIDED") {
      ++suite.errors;
      inside = element("error", message, "undecided", message);
    } else if (verdict != "pass") {
      ++suite.skipped;
      inside = skip(verdict + ": " + message);
    }
    add(suite, name, 0, inside);
  }
  for (const KeptTrouble &t : kept_troubles(document))
    if (t.kernel.empty()) {
      ++suite.failures;
      add(suite, t.file + ": status", 0, element("failure", t.message, "ledger", t.message));
    }
  return suite;
}

std::string counts(const Suite &s) {
  return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\"", s.tests, s.failures, s.errors);
}

} // namespace

std::string junit(const json &document) {
  const std::vector<Gap> all_gaps = gaps(document);
  std::vector<Suite> suites;
  for (const json &kernel : document.at("kernels")) {
    Suite suite;
    suite.name = text_of(kernel, "name");
    for (const json &run : document.at("runs"))
      if (text_of(run, "kernel") == suite.name) add_run(suite, document, run, all_gaps);
    add_kernel_gaps(suite, all_gaps);
    suites.push_back(std::move(suite));
  }
  if (Suite kept = kept_suite(document); kept.tests > 0) suites.push_back(std::move(kept));
  Suite all;
  std::string body;
  for (const Suite &s : suites) {
    all.tests += s.tests;
    all.failures += s.failures;
    all.errors += s.errors;
    all.seconds += s.seconds;
    body += fmt::format("  <testsuite name=\"{}\" {} skipped=\"{}\" time=\"{:.3f}\">\n{}"
                        "  </testsuite>\n",
                        markup(s.name), counts(s), s.skipped, s.seconds, s.cases);
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites name=\"assay check\" {} time=\"{:.3f}\">\n{}</testsuites>\n",
                     counts(all), all.seconds, body);
}

} // namespace assay::report
