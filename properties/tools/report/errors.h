// SPDX-License-Identifier: Apache-2.0
// Cases by their worst error over bound, drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/tools/report/document.h"

namespace assay::report {

/// Cases of a kernel by the worst |error| / bound of "o" or "lse", in bins of equal width from 0 to
/// 1 and one more for what lies beyond; empty where nothing was judged.
std::vector<uint64_t> error_cases(const json &document, const std::string &kernel,
                                  const std::string &output);

/// Bars, as tall as a case count is large; with `base`, its outline over them. Both have as many
/// bins.
std::string error_histogram(const std::string &title, const std::vector<uint64_t> &cases,
                            const std::vector<uint64_t> &base = {});

/// The section of the page: a pair of pictures a kernel. Each side is a list of documents, `base`
/// empty where there is none to compare with.
std::string html_errors(const std::vector<const json *> &documents,
                        const std::vector<const json *> &base = {});

} // namespace assay::report
