// SPDX-License-Identifier: Apache-2.0
// What a default run of check says to kernels that are wrong on purpose.
#pragma once

#include "corpus/mutants/mutants.h"
#include "properties/cli/commands/commands.h"
#include "properties/run/registry.h"
#include "properties/run/runner.h"

namespace assay {

/// `--mutant (correct)`: the instrumented kernels with no mutant active.
inline constexpr const char *kCorrectKernels = "(correct)";

/// Those that the options name, or all; kCorrectKernels as a mutant that changes nothing.
std::vector<const mutants::Mutant *> chosen_mutants(const MutantsOptions &options);

/// The draws of `check` of these properties with the same seed on all kernels that a mutant
/// concerns. Ends at the first failure.
RunSummary draw_for_mutant(const Session &session, const MutantsOptions &options,
                           const mutants::Mutant &mutant,
                           const std::vector<const Property *> &properties);

/// Another check under the name of within_budget, and so on its cases, `weight` for each of others.
Property in_place_of_within_budget(CheckResult (*check)(const Problem &, Sut &), int weight);

/// `mutants --default-draw`: the draws of `check` with the same seed on all kernels that a mutant
/// concerns, kept findings aside, until a property fails. Exit code 4 when a mutant survives, 1
/// when the kernels with none are accused.
int draw_for_mutants(Session &session, const MutantsOptions &options);

} // namespace assay
