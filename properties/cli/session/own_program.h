// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace assay {

/// This program, as it can be started again; CliError where that cannot be known.
std::string own_program();

} // namespace assay
