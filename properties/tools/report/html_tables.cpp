// SPDX-License-Identifier: Apache-2.0
// The tables of the page: coverage and kernels.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/escape.h"
#include "properties/tools/report/html_parts.h"

namespace assay::report {
namespace {

constexpr const char *kCellWords[] = {"not of this property", "covered", "outside its envelope",
                                      "missing"};
constexpr const char *kCellMarks[] = {"", "&#10003;", "&ndash;", "!"};

std::string cell(Cell kind, const std::string &title) {
  const auto i = static_cast<size_t>(kind);
  return fmt::format("<td class=\"cell c{}\" title=\"{}\">{}</td>", i, markup(title),
                     kCellMarks[i]);
}

std::string table_head(const Coverage &c) {
  std::string out = "<thead><tr><th>class</th><th>by</th>";
  for (const std::string &name : c.properties)
    out += fmt::format("<th><span>{}</span></th>", markup(name));
  return out + "</tr></thead>\n";
}

std::string table_row(const Coverage &c, const Coverage::Row &row) {
  const auto seen = std::count(row.cells.begin(), row.cells.end(), Cell::kCovered);
  std::string out =
      fmt::format("<tr><th scope=\"row\">{}</th><td class=\"sum\">{}</td>", markup(row.name), seen);
  for (size_t i = 0; i < row.cells.size(); ++i) {
    std::string title = fmt::format("{}, {}: {}", row.name, c.properties[i],
                                    kCellWords[static_cast<size_t>(row.cells[i])]);
    if (row.cells[i] == Cell::kCovered) title += fmt::format(", {} cases", row.cases[i]);
    out += cell(row.cells[i], title);
  }
  return out + "</tr>\n";
}

std::string names_of(const Coverage &c, Cell kind) {
  const auto names = c.names(kind);
  return names.empty() ? "" : " (" + joined(names) + ")";
}

/// What a reviewer reads first, then the table.
std::string kernel_coverage(const json &document, const std::string &kernel) {
  const Coverage c = coverage(document, kernel);
  if (c.rows.empty() || c.properties.empty()) return "";
  const int missing = c.count(Cell::kMissing);
  std::string out = fmt::format(
      "<details class=\"block\" data-kernel=\"{0}\"{1}><summary><b>{0}</b>: {2} of {3} classes "
      "covered, {4} outside its envelope{5}, <span class=\"{6}\">{7} missing</span>{8}</summary>\n",
      markup(kernel), document.at("kernels").size() == 1 ? " open" : "", c.count(Cell::kCovered),
      c.rows.size(), c.count(Cell::kOutside), markup(names_of(c, Cell::kOutside)),
      missing > 0 ? "over" : "", missing, markup(names_of(c, Cell::kMissing)));
  out += "<div class=\"scroll\"><table class=\"cover\">" + table_head(c) + "<tbody>\n";
  for (const Coverage::Row &row : c.rows)
    out += table_row(c, row);
  return out + "</tbody></table></div></details>\n";
}

std::string legend() {
  std::string out = "<p class=\"soft\">";
  for (Cell kind : {Cell::kCovered, Cell::kOutside, Cell::kMissing, Cell::kNothing}) {
    const auto i = static_cast<size_t>(kind);
    out += fmt::format("<span class=\"key\"><span class=\"cell c{}\">{}</span>{}</span>", i,
                       kCellMarks[i], kCellWords[i]);
  }
  return out + "</p>\n";
}

/// A number with its bar: full at 1, where a right kernel ends.
std::string ratio(double value) {
  if (!(value > 0)) return "<td>-</td>";
  const bool over = value > 1;
  return fmt::format("<td{}>{}<span class=\"bar\"><i{} style=\"width:{:.0f}%\"></i></span></td>",
                     over ? " class=\"over\"" : "", ratio_text(value),
                     over ? " class=\"over\"" : "", std::min(value, 1.0) * 100);
}

std::string kernel_row(const json &document, const json &kernel) {
  const std::string name = text_of(kernel, "name");
  const json &groups = document.at("groups");
  std::string links;
  for (size_t i = 0; i < groups.size(); ++i)
    if (text_of(groups[i], "kernel") == name)
      links += fmt::format("{0}<a href=\"#finding-{1}\">{1}</a>", links.empty() ? "" : ", ", i + 1);
  const json &worst = kernel.at("worst");
  const double budget = kernel.at("median_budget").get<double>();
  std::string out =
      fmt::format("<tr data-kernel=\"{0}\"><td>{0}</td><td>{1}</td><td>{2}</td>", markup(name),
                  links.empty() ? "-" : links, text_of(kernel, "cases"));
  for (const char *tier : {"ratio_t0", "ratio_t1", "ratio_t2", "ratio_lse"})
    out += ratio(worst.at(tier).get<double>());
  return out + fmt::format("<td>{}</td></tr>\n", budget > 0 ? fmt::format("{:.1e}", budget) : "-");
}

} // namespace

std::string html_coverage(const json &document) {
  std::string out;
  for (const json &kernel : document.at("kernels"))
    out += kernel_coverage(document, text_of(kernel, "name"));
  return out.empty() ? "" : "<h2>Coverage: class by property</h2>\n" + legend() + out;
}

/// A line a kernel.
static std::string html_sizes(const json &document) {
  const Reached sizes = reached(document);
  if (sizes.rows.empty()) return "";
  std::string out = "<h2>Sizes</h2>\n<p class=\"soft\">Of each field the largest size that ten "
                    "judged draws reached.</p>\n"
                    "<div class=\"scroll\"><table><thead><tr><th>kernel</th>";
  for (const std::string &field : sizes.fields)
    out += fmt::format("<th>{}</th>", markup(field));
  out += "</tr></thead><tbody>\n";
  for (const Reached::Row &row : sizes.rows) {
    out += fmt::format("<tr data-kernel=\"{0}\"><td>{0}</td>", markup(row.kernel));
    for (const std::string &size : row.sizes)
      out += fmt::format("<td>{}</td>", markup(size));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_kernels(const json &document) {
  std::string out = "<h2>Kernels</h2>\n<p class=\"soft\">Worst error over what is allowed, by tier "
                    "of the oracle and for the LSE: 1 at most for a right kernel. Budget: the "
                    "median over cases of what is allowed over |O|.</p>\n"
                    "<div class=\"scroll\"><table><thead><tr>";
  for (const char *name : {"kernel", "findings", "cases", "T0", "T1", "T2", "LSE", "median budget"})
    out += fmt::format("<th>{}</th>", name);
  out += "</tr></thead><tbody>\n";
  for (const json &kernel : document.at("kernels"))
    out += kernel_row(document, kernel);
  return out + "</tbody></table></div>\n" + html_sizes(document);
}

} // namespace assay::report
