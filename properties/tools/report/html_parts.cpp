// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/html_parts.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/escape.h"
#include "properties/tools/report/html_page.h"

namespace assay::report {
namespace {

std::string paragraph(const char *label, const std::string &text) {
  return text.empty() ? "" : fmt::format("<p>{}{}</p>\n", label, markup(text));
}

std::string chips(const char *label, const std::vector<std::string> &names) {
  if (names.empty()) return "";
  std::string out = fmt::format("<div class=\"chips\"><span class=\"soft\">{}</span>", label);
  for (const std::string &name : names)
    out += fmt::format("<span class=\"chip\">{}</span>", markup(name));
  return out + "</div>\n";
}

std::string finding(const json &document, size_t index) {
  const json &group = document.at("groups").at(index);
  const json &f = sharpest(document, group);
  std::string out = fmt::format(
      "<article class=\"card\" id=\"finding-{}\" data-kernel=\"{}\">\n<h3>{} &middot; {}</h3>\n",
      index + 1, markup(text_of(f, "kernel")), markup(text_of(f, "kernel")),
      markup(text_of(f, "property")));
  out += fmt::format("<p><code>{}</code></p>\n", markup(text_of(f, "message")));
  out += paragraph("", text_of(f, "how_far"));
  out += paragraph("<span class=\"soft\">cause</span> ", text_of(f.at("cause"), "text"));
  out += chips("also seen by", also_seen_by(group));
  out += html_command(text_of(f, "reproduce"));
  out += html_folded("error and budget", text_of(f, "detail"));
  out += html_folded("case", text_of(f, "case"));
  out += fmt::format("<p class=\"soft\">{} of {} cases fail &middot; fingerprint {}</p>\n",
                     text_of(f, "failing_cases"), text_of(f, "cases"),
                     markup(text_of(group, "fingerprint")));
  return out + "</article>\n";
}

/// Gaps of one kernel in one wording.
struct GapCard {
  GapCard(std::string of, std::string why) : kernel(std::move(of)), text(std::move(why)) {}
  std::string kernel, text;
  std::vector<std::string> properties;
};

std::string kept(const KeptTrouble &t) {
  const std::string who = t.kernel.empty() ? "ledger" : t.kernel + " " + t.property;
  return fmt::format("<article class=\"card\" data-kernel=\"{}\">\n<h3>kept &middot; {}</h3>\n"
                     "<p><code>{}</code></p>\n{}</article>\n",
                     markup(t.kernel), markup(who), markup(t.message), paragraph("", t.file));
}

} // namespace

std::string html_findings(const json &document) {
  std::string out;
  for (size_t i = 0; i < document.at("groups").size(); ++i)
    out += finding(document, i);
  for (const KeptTrouble &t : kept_troubles(document))
    out += kept(t);
  return out.empty() ? "" : "<h2>Findings</h2>\n" + out;
}

std::string html_gaps(const json &document) {
  std::vector<GapCard> cards;
  for (const Gap &gap : gaps(document)) {
    const auto same = std::find_if(cards.begin(), cards.end(), [&](const GapCard &card) {
      return card.kernel == gap.kernel && card.text == gap.text;
    });
    GapCard &card = same != cards.end() ? *same : cards.emplace_back(gap.kernel, gap.text);
    if (!gap.property.empty()) card.properties.push_back(gap.property);
  }
  std::string out;
  for (const GapCard &card : cards)
    out += fmt::format(
        "<article class=\"card gap\" data-kernel=\"{0}\"><h3>{0}</h3>{1}{2}</article>\n",
        markup(card.kernel), paragraph("", card.text), chips("of", card.properties));
  return out.empty() ? "" : "<h2>Not proved</h2>\n" + out;
}

} // namespace assay::report
