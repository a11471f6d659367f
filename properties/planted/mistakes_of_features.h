// SPDX-License-Identifier: Apache-2.0
// What belongs to a head, a window or a token, and is taken from another.
#pragma once

#include "properties/planted/mistake.h"

namespace assay::planted {

std::vector<Mistake> mistakes_of_fp8();
std::vector<Mistake> mistakes_of_features();
std::vector<Mistake> mistakes_of_tokens();

} // namespace assay::planted
