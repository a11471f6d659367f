// SPDX-License-Identifier: Apache-2.0
// How much of a case was compared: one of which nothing was proves nothing.
#pragma once

#include <cstdint>

namespace assay {

/// Output elements that are about to be compared with what they must be.
void count_compared(uint64_t elements = 1);

/// Counted on this thread since the last call.
uint64_t take_compared();

} // namespace assay
