// SPDX-License-Identifier: Apache-2.0
// A change of the harness itself: does it still let right kernels pass, and notice wrong ones?
#pragma once

#include "properties/tools/gate/gate.h"

namespace assay::gate {

/// `assay check` of the program over its own kernels: anything but a pass is a red line.
void judge_right_kernels(const std::string &program, Gate &gate);

/// `assay mutants --default-draw` for one mutant after another, in an order that the seed decides,
/// while the budget lasts. One that head's draws do not notice is a red line where base's do;
/// `program_of_base` is asked for then only. A note says how many were run.
void judge_mutants(const std::vector<std::string> &mutants, const std::string &program,
                   const std::function<std::string()> &program_of_base, Gate &gate);

} // namespace assay::gate
