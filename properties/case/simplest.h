// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

/// In what a case differs from the simplest of its family, a field each as a `.case` has it:
/// "k_layout = hnd". Seeds of values are left out: any other draw of them may do.
std::vector<std::string> differences(const Problem &p);

} // namespace assay
