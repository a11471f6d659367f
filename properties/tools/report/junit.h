// SPDX-License-Identifier: Apache-2.0
// JUnit XML: a suite for each kernel and a test for each property; what fails names its case.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace assay::report {

/// Renders the document of `check --json`, complete and valid UTF-8.
std::string junit(const nlohmann::json &document);

} // namespace assay::report
