// SPDX-License-Identifier: Apache-2.0
// The sections of the page of html.h, from the findings down; each empty where it has nothing to
// say.
#pragma once

#include "properties/tools/report/document.h"

namespace assay::report {

std::string html_findings(const json &document);
/// What the run does not prove.
std::string html_gaps(const json &document);
/// Class x property of each kernel: covered, outside its envelope, missing.
std::string html_coverage(const json &document);
std::string html_kernels(const json &document);

} // namespace assay::report
