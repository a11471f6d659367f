// SPDX-License-Identifier: Apache-2.0
// SARIF 2.1.0: a result for each finding, at the kernel's own line where a hazard has one.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace assay::report {

/// Renders the document of `check --json`, complete and valid UTF-8.
std::string sarif(const nlohmann::json &document);

} // namespace assay::report
