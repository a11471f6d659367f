// SPDX-License-Identifier: Apache-2.0
// Every kind of case, for tests that ask the same of each.
#pragma once

#include "properties/case/problem.h"

namespace assay {

inline constexpr Family kFamilies[] = {Family::kPaged, Family::kCascade, Family::kMergeState,
                                       Family::kMergeStates};

} // namespace assay
