// SPDX-License-Identifier: Apache-2.0
#include "properties/report/html.h"

#include <fmt/format.h>

#include "properties/report/errors.h"
#include "properties/report/html_parts.h"
#include "properties/report/html_style.h"

namespace assay::report {

std::string html(const json &document) {
  return fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"robots\" content=\"noindex\">\n"
                     "<link rel=\"icon\" href=\"data:,\">\n"
                     "<title>assay: {}</title>\n<style>{}</style>\n</head>\n<body>\n",
                     verdict_word(document), kStyle) +
         html_verdict(document) + html_filter(document) + "<main>\n" + html_findings(document) +
         html_gaps(document) + html_coverage(document) + html_kernels(document) +
         html_errors({&document}) + "</main>\n" +
         fmt::format("<script>{}</script>\n</body>\n</html>\n", kScript);
}

} // namespace assay::report
