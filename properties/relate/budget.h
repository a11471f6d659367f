// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "oracle/judge/verdict.h"
#include "properties/relate/outcome.h"

namespace assay {

/// The oracle's verdict on every element of a run, with its worst ratios; `detail` names the worst
/// element, its enclosure and the budget by term.
CheckResult inside_budget(const Outcome &run, Sut &sut);

/// Whether a second run gives what the first did: bit for bit, or, from a kernel that declares no
/// determinism, within its bounds. `what` says what the second run changed.
CheckResult same_result(const Outcome &first, const Outcome &second, Sut &sut,
                        const std::string &what);

/// What a report says, as the result of a check.
CheckResult result_of(const oracle::Report &report);

} // namespace assay
