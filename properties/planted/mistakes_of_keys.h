// SPDX-License-Identifier: Apache-2.0
// Keys and pages that one head takes for others.
#pragma once

#include "properties/planted/mistake.h"

namespace assay::planted {

std::vector<Mistake> mistakes_of_keys();
/// In a pool with pages to lose.
std::vector<Mistake> mistakes_of_offsets();

} // namespace assay::planted
