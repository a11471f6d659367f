// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "properties/case/codec.h"

namespace assay {

/// Uniform bytes of a random length, so that a case is random up to some field and simplest after
/// it. They are those of RapidCheck's generator for the seed: recorded draws name cases by seeds.
Bytes draw_case_bytes(uint64_t seed);

/// The case of one family that these bytes are.
Problem draw_problem(const Limits &limits, Family family, uint64_t seed);

} // namespace assay
