// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "properties/relate/outcome.h"

namespace assay {

/// What decides one row of a run: the worst element with its enclosure and budget by term, then the
/// keys (or merge states) with the largest softmax weights. Several lines.
std::string explain_run(const Outcome &run, Sut &sut);

} // namespace assay
