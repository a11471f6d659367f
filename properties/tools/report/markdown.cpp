// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/markdown.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"
#include "properties/tools/report/escape.h"

namespace assay::report {
namespace {

/// A comment on GitHub holds 65,536 characters.
constexpr size_t kMaxFindings = 20, kMaxCases = 5, kMaxGaps = 10;

std::string row(const std::vector<std::string> &cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string header(const std::vector<std::string> &names) {
  return row(names) + row(std::vector<std::string>(names.size(), "---"));
}

std::string spans(const std::vector<std::string> &words) {
  std::vector<std::string> out;
  for (const std::string &word : words)
    out.push_back(code_span(word));
  return joined(out);
}

std::string findings(const json &document) {
  const json &groups = document.at("groups");
  const auto kept = kept_troubles(document);
  if (groups.empty() && kept.empty()) return "";
  std::string out = "\n" + header({"kernel", "property", "finding", "by how much", "also seen by"});
  size_t shown = 0;
  for (const json &group : groups) {
    if (shown++ == kMaxFindings) break;
    const json &f = sharpest(document, group);
    out += row({code_span(text_of(f, "kernel")), code_span(text_of(f, "property")),
                code_span(text_of(f, "message")), code_span(text_of(f, "how_far")),
                spans(also_seen_by(group))});
  }
  for (const KeptTrouble &t : kept) {
    if (shown++ >= kMaxFindings) break;
    out += row({code_span(t.kernel), code_span(t.property), code_span(t.message), "",
                "kept: " + code_span(t.file)});
  }
  const size_t all = groups.size() + kept.size();
  if (all > kMaxFindings) out += fmt::format("\nand {} more\n", all - kMaxFindings);
  return out;
}

std::string cases(const json &document) {
  std::string out;
  size_t shown = 0;
  for (const json &group : document.at("groups")) {
    if (shown++ == kMaxCases) break;
    const json &f = sharpest(document, group);
    out += fmt::format("\n<details><summary>case {} of {}</summary>\n\n", shown,
                       document.at("groups").size());
    if (const std::string line = text_of(f, "reproduce"); !line.empty()) out += code_block(line);
    out += code_block(text_of(f, "case")) + "\n</details>\n";
  }
  return out;
}

std::string kernels(const json &document) {
  std::string out = "\n" + header({"kernel", "cases", "worst O", "worst LSE", "median budget",
                                   "classes", "outside its envelope", "missing"});
  for (const json &kernel : document.at("kernels")) {
    const std::string name = text_of(kernel, "name");
    const Coverage c = coverage(document, name);
    const json &worst = kernel.at("worst");
    double o = 0;
    for (const char *tier : {"ratio_t0", "ratio_t1", "ratio_t2"})
      o = std::max(o, worst.at(tier).get<double>());
    const double budget = kernel.at("median_budget").get<double>();
    out += row({code_span(name), text_of(kernel, "cases"), ratio_text(o),
                ratio_text(worst.at("ratio_lse").get<double>()),
                budget > 0 ? fmt::format("{:.1e}", budget) : "-",
                fmt::format("{} of {}", c.count(Cell::kCovered), c.rows.size()),
                spans(c.names(Cell::kOutside)), spans(c.names(Cell::kMissing))});
  }
  return out + "\nWorst: error over what is allowed, 1 at most for a right kernel.\n";
}

std::string gap_list(const json &document) {
  std::string out;
  size_t shown = 0;
  const auto all = gaps_in_short(document);
  for (const Gap &gap : all) {
    if (shown++ == kMaxGaps) break;
    const std::string of = gap.property.empty() ? "" : " " + code_span(gap.property);
    out += fmt::format("- {}{}: {}\n", code_span(gap.kernel), of, code_span(gap.text));
  }
  if (all.size() > kMaxGaps) out += fmt::format("- and {} more\n", all.size() - kMaxGaps);
  return out.empty() ? "" : "\nNot proved:\n\n" + out;
}

std::string identity(const json &document) {
  const std::string line = identity_line(document);
  return line.empty() ? "" : "\n" + code_span(line) + "\n";
}

} // namespace

std::string markdown(const json &document) {
  return fmt::format("**assay: {}**, {}\n", verdict_word(document), summary_line(document)) +
         identity(document) + findings(document) + gap_list(document) + kernels(document) +
         cases(document);
}

} // namespace assay::report
