// SPDX-License-Identifier: Apache-2.0
// A case for the commands that take one from a file, whether a host holds it or not.
#pragma once

#include "properties/case/case_text.h"
#include "properties/run/checked.h"

namespace assay {

/// As checked(); of a case that no host holds within_budget alone, on the GPU.
CheckResult checked_case(const Property &property, const Problem &p, Sut &sut, bool *threw);
/// Behind the cases that a case names before it, in one process.
CheckResult checked_case(const Property &property, const Case &c, Sut &sut, bool *threw);

} // namespace assay
