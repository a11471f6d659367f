// SPDX-License-Identifier: Apache-2.0
// The page of a gate: one file, no network.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/gate/reports.h"
#include "properties/tools/report/document.h"
#include "properties/tools/report/errors.h"
#include "properties/tools/report/escape.h"
#include "properties/tools/report/html_page.h"

namespace assay::gate {
namespace {

using report::html_command;
using report::html_folded;
using report::markup;
using report::ratio_text;
using report::text_of;

std::string card(const json &line, const char *look, bool accepted) {
  std::string out = fmt::format(
      "<article class=\"card{}\" data-kernel=\"{}\"><h3>{}{}</h3><p><code>{}</code></p>\n", look,
      markup(text_of(line, "kernel")),
      text_of(line, "kernel").empty() ? "" : markup(text_of(line, "kernel")) + " &middot; ",
      markup(text_of(line, "id")), markup(text_of(line, "text")));
  out += html_command(text_of(line, "reproduce"));
  if (line.at("acceptable").get<bool>() && !accepted)
    out += fmt::format("<p class=\"soft\">for a person to accept: --accept {}</p>\n",
                       markup(text_of(line, "id")));
  return out + "</article>\n";
}

std::string cards(const json &lines, const char *title, const char *look, bool accepted) {
  std::string out;
  for (const json &line : lines)
    out += card(line, look, accepted);
  return out.empty() ? "" : fmt::format("<h2>{}</h2>\n", title) + out;
}

std::string findings(const json &document) {
  std::string out;
  for (const json &f : document.at("findings"))
    out += fmt::format(
        "<article class=\"card{}\" data-kernel=\"{}\"><h3>{} &middot; {} &middot; {}"
        "</h3><p><code>{}</code></p>\n<p>{}</p>\n<p><span class=\"soft\">cause</span> "
        "{}</p>\n<p class=\"soft\">fails in {} of {} replays on base, {} of {} on "
        "head &middot; fingerprint {}</p>\n{}{}</article>\n",
        f.at("red").get<bool>() ? "" : " gap", markup(text_of(f, "kernel")),
        markup(text_of(f, "state")), markup(text_of(f, "kernel")), markup(text_of(f, "property")),
        markup(text_of(f, "message")), markup(text_of(f, "how_far")), markup(text_of(f, "cause")),
        text_of(f.at("base"), "fails"), text_of(f.at("base"), "runs"),
        text_of(f.at("head"), "fails"), text_of(f.at("head"), "runs"),
        markup(text_of(f, "fingerprint")), html_command(text_of(f, "reproduce")),
        html_folded("case", text_of(f, "case")));
  return out.empty() ? "" : "<h2>Findings</h2>\n" + out;
}

std::string kernels(const json &document) {
  if (document.at("kernels").empty()) return "";
  std::string out =
      "<h2>Kernels</h2>\n<p class=\"soft\">Findings by where they stand; O, LSE: worst error over "
      "what is allowed, on each revision.</p>\n<div class=\"scroll\"><table>\n<thead><tr>";
  for (const char *name : {"kernel", "touched", "cases", "new", "known", "fixed", "flaky", "O base",
                           "O head", "LSE base", "LSE head"})
    out += fmt::format("<th>{}</th>", name);
  out += "</tr></thead>\n<tbody>\n";
  for (const json &k : document.at("kernels")) {
    out += fmt::format("<tr data-kernel=\"{0}\"><th>{0}</th><td>{1}</td>",
                       markup(text_of(k, "name")), k.at("touched").get<bool>() ? "yes" : "");
    for (const char *count : {"cases", "new", "known", "fixed", "flaky"})
      out += fmt::format("<td>{}</td>", text_of(k, count));
    for (const char *error : {"error_o", "error_lse"})
      for (const char *revision : {"base", "head"})
        out += fmt::format("<td>{}</td>", ratio_text(k.at(error).at(revision).get<double>()));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string errors(const json &document) {
  std::vector<const json *> base, head;
  for (const json &check : document.at("checks")) {
    base.push_back(&check.at("base"));
    head.push_back(&check.at("head"));
  }
  return report::html_errors(head, base);
}

std::string list(const json &lines, const char *title) {
  std::string out;
  for (const json &line : lines)
    out += fmt::format("<li>{}</li>\n", markup(line.get<std::string>()));
  return out.empty() ? "" : fmt::format("<h2>{}</h2>\n<ul>\n{}</ul>\n", title, out);
}

} // namespace

std::string html(const json &document) {
  const report::HtmlPage::Filter filter{report::kernel_names(document), "red lines and findings"};
  return report::html_page(
      {.of = "assay gate",
       .verdict = verdict_word(document),
       .exit = document.at("exit").get<int>(),
       .summary = summary_line(document),
       .version = text_of(document, "version"),
       .style = "",
       .filter = &filter,
       .main = list(document.at("failures"), "Failed") +
               cards(document.at("red"), "Red lines", "", false) +
               cards(document.at("accepted"), "Accepted by a person", " gap", true) +
               findings(document) + kernels(document) + errors(document) +
               list(document.at("notes"), "Notes")});
}

} // namespace assay::gate
