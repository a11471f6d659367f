// SPDX-License-Identifier: Apache-2.0
// Cases that no host holds: what a .case may say for a GPU.
#pragma once

#include "properties/case/problem.h"

namespace assay {

/// A device takes larger paged cases than full_limits(): 2^27 cache slots, rows of 2^20 keys.
Limits device_limits(Family family);

/// Within device_limits(), and beyond full_limits().
bool is_big(const Problem &p);

} // namespace assay
