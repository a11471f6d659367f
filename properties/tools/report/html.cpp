// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/html.h"

#include <nlohmann/json.hpp>

#include "properties/tools/report/errors.h"
#include "properties/tools/report/html_page.h"
#include "properties/tools/report/html_parts.h"

namespace assay::report {

namespace {

std::string summary(const json &document) {
  const std::string identity = identity_line(document);
  return summary_line(document) + (identity.empty() ? "" : "; " + identity);
}

} // namespace

std::string html(const json &document) {
  const HtmlPage::Filter filter{kernel_names(document), "findings and gaps"};
  return html_page({.of = "assay",
                    .verdict = verdict_word(document),
                    .exit = document.at("exit").get<int>(),
                    .summary = summary(document),
                    .version = text_of(document, "version"),
                    .style = "",
                    .filter = &filter,
                    .main = html_findings(document) + html_gaps(document) +
                            html_coverage(document) + html_kernels(document) +
                            html_errors({&document})});
}

} // namespace assay::report
