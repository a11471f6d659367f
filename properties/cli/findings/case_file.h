// SPDX-License-Identifier: Apache-2.0
// A case as a file.
#pragma once

#include <string>

#include "properties/case/case_text.h"

namespace assay {

/// Where `check` writes findings unless --out says.
inline constexpr const char *kFindingsFolder = "findings";

/// Reads and parses a .case; CliError names file, line and reason.
Case load_case(const std::string &path);
/// Whole or not at all; makes the folder.
void write_case(const std::string &path, const Case &c);
/// File name of a finding: kernel, property and a hash of the case.
std::string finding_name(const Case &c);

} // namespace assay
