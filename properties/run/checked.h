// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "properties/run/registry.h"

namespace assay {

/// A check with everything thrown turned into a harness error (`threw` set, unless it is null).
CheckResult checked(const std::function<CheckResult()> &check, bool *threw);
CheckResult checked(const Property &property, const Problem &p, Sut &sut, bool *threw);

} // namespace assay
