// SPDX-License-Identifier: Apache-2.0
// A case that no host holds: its cache is made where the kernel runs, every output is judged there,
// and what is open on the host.
#pragma once

#include "properties/machine/machine.h"
#include "properties/relate/check_result.h"

namespace assay {

/**
 * within_budget of a paged case, with T0 and the LSE. The machine is used up: one a check. A pass
 * says in `message` what was judged. Throws std::runtime_error where the machine has too little
 * memory, std::logic_error where the host does not agree with a row that was inside.
 */
CheckResult big_within_budget(const Problem &p, const assay_kernel &kernel, Machine &machine);

} // namespace assay
