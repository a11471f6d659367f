// SPDX-License-Identifier: Apache-2.0
// What a declared arithmetic may say. The budgets are computed from it and nothing else, so one
// field that is no number would make every bound one that anything passes.
#pragma once

#include <string>

#include "kernels/abi/plugin.h"

namespace assay::oracle {

/** The first field outside its range, with its value and the range; empty when there is none. */
std::string declaration_defect(const assay_arithmetic &arithmetic);

/** Throws std::invalid_argument with the defect. */
void require_declaration(const assay_arithmetic &arithmetic);

} // namespace assay::oracle
