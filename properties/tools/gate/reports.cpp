// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/reports.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"
#include "properties/tools/report/escape.h"

namespace assay::gate {
namespace {

using report::code_block;
using report::code_span;
using report::ratio_text;
using report::text_of;

std::string revision_text(const json &document, const char *revision) {
  if (!document.contains(revision)) return revision;
  const json &s = document.at(revision);
  const std::string commit = text_of(s, "commit").substr(0, 8);
  return commit.empty() ? text_of(s, "name") : fmt::format("{} ({})", text_of(s, "name"), commit);
}

std::string counted(size_t n, const char *word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

std::string error_text(const json &error) {
  return fmt::format("{} -> {}", ratio_text(error.at("base").get<double>()),
                     ratio_text(error.at("head").get<double>()));
}

/// Why there is no table.
std::string plan_text(const json &document) {
  const std::string kind = document.contains("plan") ? text_of(document.at("plan"), "kind") : "";
  if (kind == "nothing") return "nothing that runs changed: no kernel was run\n";
  if (kind == "mutants") return "no kernel changed: head's harness ran its checks and mutants\n";
  return "";
}

std::string red_text(const json &line) {
  std::string out = fmt::format(
      "  {:<18} {}{}\n", text_of(line, "id"),
      text_of(line, "kernel").empty() ? "" : text_of(line, "kernel") + " ", text_of(line, "text"));
  const std::string file = text_of(line, "file"), again = text_of(line, "reproduce");
  if (!file.empty()) out += fmt::format("  {:<18} case: {}\n", "", file);
  if (!again.empty()) out += fmt::format("  {:<18} reproduce: {}\n", "", again);
  if (line.at("acceptable").get<bool>())
    out += fmt::format("  {:<18} for a person: --accept {}\n", "", text_of(line, "id"));
  return out;
}

std::string row(const std::vector<std::string> &cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string markdown_red(const json &lines, const char *title) {
  if (lines.empty()) return "";
  std::string out = fmt::format("\n{}\n\n", title) + row({"what", "kernel", "why", "case"}) +
                    row({"---", "---", "---", "---"});
  for (const json &line : lines)
    out += row({code_span(text_of(line, "id")), code_span(text_of(line, "kernel")),
                code_span(text_of(line, "text")), code_span(text_of(line, "file"))});
  return out;
}

std::string markdown_kernels(const json &document) {
  if (document.at("kernels").empty()) return "\n" + plan_text(document);
  std::string out = "\n" +
                    row({"kernel", "touched", "cases", "new", "known", "fixed", "flaky",
                         "O over bound", "LSE over bound"}) +
                    row(std::vector<std::string>(9, "---"));
  for (const json &k : document.at("kernels"))
    out += row({code_span(text_of(k, "name")), k.at("touched").get<bool>() ? "yes" : "",
                text_of(k, "cases"), text_of(k, "new"), text_of(k, "known"), text_of(k, "fixed"),
                text_of(k, "flaky"), error_text(k.at("error_o")), error_text(k.at("error_lse"))});
  return out;
}

} // namespace

std::string verdict_word(const json &document) {
  const int exit = document.at("exit").get<int>();
  return exit == 0 ? "PASS" : exit == 1 ? "BLOCKED" : "INCOMPLETE";
}

std::string summary_line(const json &document) {
  return fmt::format("{}: {} -> {}, target {}, seed {}{}, {:.1f} s",
                     counted(document.at("red").size(), "red line"),
                     revision_text(document, "base"), revision_text(document, "head"),
                     text_of(document, "target"), text_of(document, "seed"),
                     report::assumed_text(document), document.at("seconds").get<double>());
}

std::string screen(const json &document) {
  std::string out;
  for (const json &line : document.at("red"))
    out += red_text(line);
  for (const json &line : document.at("accepted"))
    out += fmt::format("  accepted: {} {}\n", text_of(line, "id"), text_of(line, "text"));
  for (const json &why : document.at("failures"))
    out += fmt::format("  failed: {}\n", why.get<std::string>());
  if (!document.at("kernels").empty())
    out +=
        fmt::format("\n{:<24} {:<7} {:>7} {:>4} {:>5} {:>5} {:>5}  {:<16} {:<16}\n", "kernel",
                    "touched", "cases", "new", "known", "fixed", "flaky", "O base -> head", "LSE");
  for (const json &k : document.at("kernels"))
    out += fmt::format("{:<24} {:<7} {:>7} {:>4} {:>5} {:>5} {:>5}  {:<16} {:<16}\n",
                       text_of(k, "name"), k.at("touched").get<bool>() ? "yes" : "-",
                       text_of(k, "cases"), text_of(k, "new"), text_of(k, "known"),
                       text_of(k, "fixed"), text_of(k, "flaky"), error_text(k.at("error_o")),
                       error_text(k.at("error_lse")));
  out += plan_text(document);
  for (const json &f : document.at("findings"))
    if (!f.at("red").get<bool>())
      out += fmt::format("{}: {} {}: {}\n", text_of(f, "state"), text_of(f, "kernel"),
                         text_of(f, "property"), text_of(f, "message"));
  for (const json &note : document.at("notes"))
    out += fmt::format("note: {}\n", note.get<std::string>());
  return out;
}

std::string markdown(const json &document) {
  std::string out = fmt::format("**assay gate: {}**, {}\n", verdict_word(document),
                                code_span(summary_line(document))) +
                    markdown_red(document.at("red"), "Red lines:") +
                    markdown_red(document.at("accepted"), "Accepted by a person:") +
                    markdown_kernels(document);
  for (const json &why : document.at("failures"))
    out += "\n- failed: " + code_span(why.get<std::string>()) + "\n";
  if (!document.at("notes").empty()) out += "\nNotes:\n\n";
  for (const json &note : document.at("notes"))
    out += "- " + code_span(note.get<std::string>()) + "\n";
  constexpr size_t kMaxCases = 5; // a comment on GitHub holds 65,536 characters
  size_t shown = 0;
  for (const json &f : document.at("findings")) {
    if (shown++ == kMaxCases) break;
    out += fmt::format("\n<details><summary>{} finding, case {}</summary>\n\n", text_of(f, "state"),
                       shown) +
           code_block(text_of(f, "reproduce")) + code_block(text_of(f, "case")) + "\n</details>\n";
  }
  return out;
}

} // namespace assay::gate
