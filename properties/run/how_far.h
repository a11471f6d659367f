// SPDX-License-Identifier: Apache-2.0
// The size of an error in words, and whether it is one that a known mistake makes.
#pragma once

#include <string>

#include "properties/case/problem.h"
#include "properties/relate/symptom.h"

namespace assay {

/// By how much an output of the case is off and, where the factor or (of an LSE) the difference has
/// a name, which: "off by 0.44, 2.89 times what is allowed; a factor of 1.4427: log2 e ...". Empty
/// unless both numbers are known.
std::string how_far(const Problem &shrunk, const Symptom &symptom);

} // namespace assay
