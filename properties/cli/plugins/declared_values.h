// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "kernels/abi/plugin.h"

namespace assay {

/// What a declaration says in a field of assay_arithmetic, or in several with ", " between: "bf16",
/// "16", "2^-23", "8, 25". Throws std::logic_error for a name that is no field.
std::string declared_value(const assay_arithmetic &arithmetic, std::string_view fields);

} // namespace assay
