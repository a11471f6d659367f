// SPDX-License-Identifier: Apache-2.0
// Markdown for a comment on a pull request: short, and every foreign word in a code span.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace assay::report {

/// Renders the document of `check --json`, complete and valid UTF-8.
std::string markdown(const nlohmann::json &document);

} // namespace assay::report
