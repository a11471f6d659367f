// SPDX-License-Identifier: Apache-2.0
// Rows and elements that are wrong where they are written.
#pragma once

#include "properties/planted/mistake.h"

namespace assay::planted {

std::vector<Mistake> mistakes_of_outputs();

} // namespace assay::planted
