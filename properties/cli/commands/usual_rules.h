// SPDX-License-Identifier: Apache-2.0
// What the acceptance rules that tests usually have say to kernels that are wrong on purpose.
#pragma once

#include "properties/cli/commands/commands.h"

namespace assay {

/// `mutants --usual-rules`: the cases that `check` draws for within_budget with values N(0,1), on
/// all kernels that a mutant concerns; O of each row is judged by 1e-2, 1e-3, 98 % and 2x
/// (oracle/judge/usual_rules.h; 2x of attention without softcap, ALiBi and sinks alone) in place of
/// our bounds. The document has the cases that each rule rejects; those that it rejects of the
/// right kernels, too (`--mutant (correct)`), say nothing about a mutant. Exit code 0.
int judge_by_usual_rules(Session &session, const MutantsOptions &options);

} // namespace assay
