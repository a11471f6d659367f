// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/html_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"
#include "properties/tools/report/escape.h"
#include "properties/tools/report/html_style.h"

namespace assay::report {
namespace {

const char *look_of(int exit) { return exit == 0 ? "pass" : exit == 1 ? "fail" : "incomplete"; }

std::string header(const HtmlPage &page) {
  std::string out = fmt::format("<header class=\"verdict {}\">\n<h1>{}</h1>\n<p>{}</p>\n",
                                look_of(page.exit), markup(page.verdict), markup(page.summary));
  if (!page.version.empty())
    out += fmt::format("<p class=\"soft\">assay {}</p>\n", markup(page.version));
  return out + "</header>\n";
}

std::string filter(const HtmlPage::Filter &filter) {
  std::string out = "<div class=\"filter\" hidden>\n<select id=\"kernel\" aria-label=\"kernel\">"
                    "<option value=\"\">all kernels</option>";
  for (const std::string &kernel : filter.kernels)
    out += fmt::format("<option value=\"{0}\">{0}</option>", markup(kernel));
  return out + fmt::format("</select>\n<input id=\"words\" type=\"search\" aria-label=\"text\" "
                           "placeholder=\"text in {}\">\n<output id=\"shown\"></output>\n</div>\n",
                           markup(filter.searched));
}

} // namespace

std::string html_page(const HtmlPage &page) {
  std::string out =
      fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"robots\" content=\"noindex\">\n"
                  "<link rel=\"icon\" href=\"data:,\">\n"
                  "<title>{}: {}</title>\n<style>{}{}</style>\n</head>\n<body>\n",
                  markup(page.of), markup(page.verdict), kStyle, page.style);
  out += header(page);
  if (page.filter != nullptr) out += filter(*page.filter);
  out += "<main>\n" + page.main + "</main>\n";
  if (page.filter != nullptr) out += fmt::format("<script>{}</script>\n", kScript);
  return out + "</body>\n</html>\n";
}

std::vector<std::string> kernel_names(const nlohmann::json &document) {
  std::vector<std::string> out;
  for (const nlohmann::json &kernel : document.at("kernels"))
    out.push_back(text_of(kernel, "name"));
  return out;
}

std::string html_folded(const char *summary, const std::string &text) {
  if (text.empty()) return "";
  return fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", summary,
                     markup(text));
}

std::string html_command(const std::string &line) {
  return line.empty() ? "" : fmt::format("<pre class=\"command\">{}</pre>\n", markup(line));
}

} // namespace assay::report
