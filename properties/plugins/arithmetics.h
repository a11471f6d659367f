// SPDX-License-Identifier: Apache-2.0
// Named arithmetics: the data files of properties/python/assay/arithmetics, as declarations to
// start from.
#pragma once

#include <string>
#include <vector>

#include "properties/plugins/project.h"

namespace assay::plugins {

/// In alphabetical order.
std::vector<std::string> arithmetic_names();

/// A template with the named declaration in the place of its own, each field under its source; in
/// Python the name. Throws std::invalid_argument where there is no such arithmetic.
std::string with_arithmetic(const std::string &text, Language language, const std::string &name);

} // namespace assay::plugins
