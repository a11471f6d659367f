// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/cases/case_input.h"
#include "kernels/abi/plugin.h"

namespace assay::fuzz {

/// Cases of fuzz size, of any family.
const CaseFormat &problem_format();

/// First byte: a property. The rest: a case. Runs within_budget and that property on every simt
/// kernel of the plugin that takes the case.
/// `replay_scores`: T2 too, for kernels whose MMA has the bits of oracle/bounds/block_fma.h.
std::string check_problem_with(const assay_plugin &plugin, Input input, bool replay_scores = false);
inline std::string check_problem(Input input) {
  return check_problem_with(*assay_plugin_entry(ASSAY_ABI_MAJOR), input, true);
}

} // namespace assay::fuzz
