// SPDX-License-Identifier: Apache-2.0
// The skeleton of every page of assay, of a check, a gate and a campaign: one file without network,
// the verdict first.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace assay::report {

struct HtmlPage {
  std::string of;      ///< "assay", "assay gate"
  std::string verdict; ///< in a word or two
  int exit = 0;        ///< which colours it
  std::string summary; ///< one line
  std::string version; ///< version of assay; empty: unknown
  std::string style;   ///< beside that of all pages
  /// With it, items that carry `data-kernel` can be filtered by kernel, and cards by the text they
  /// show.
  struct Filter {
    std::vector<std::string> kernels;
    std::string searched; ///< what the text is searched in: "findings and gaps"
  };
  const Filter *filter = nullptr;
  std::string main; ///< markup; the rest is text
};
std::string html_page(const HtmlPage &page);

/// The names of a document's kernels.
std::vector<std::string> kernel_names(const nlohmann::json &document);

// Pieces of more than one page; empty for an empty text.
std::string html_folded(const char *summary, const std::string &text);
std::string html_command(const std::string &line);

} // namespace assay::report
