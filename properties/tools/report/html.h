// SPDX-License-Identifier: Apache-2.0
// One page that needs nothing else: no network, no fonts, a few lines of script to filter.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace assay::report {

/// Renders the document of `check --json`, complete and valid UTF-8.
std::string html(const nlohmann::json &document);

} // namespace assay::report
