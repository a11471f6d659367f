// SPDX-License-Identifier: Apache-2.0
// What the executor reports of kernels that lack an order, on its first schedule.
#pragma once

#include "properties/cli/commands/commands.h"

namespace assay {

/// `mutants --first-schedule`: the cases that `check` draws for within_budget, on all kernels that
/// a mutant concerns, each run once: threads and blocks in ascending order, copies at their wait.
/// With `--case` the cases of those files in their place. Nothing is judged but what the executor
/// reports. Exit code 4 when a mutant is not reported, 1 when the kernels with none are.
int report_on_first_schedule(Session &session, const MutantsOptions &options);

} // namespace assay
