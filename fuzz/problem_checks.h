// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/target.h"
#include "kernels/abi/plugin.h"

namespace assay::fuzz {

/// First byte: a property. The rest: a case. Runs within_budget and that property on every simt
/// kernel of the plugin that takes the case.
std::string check_problem_with(const assay_plugin &plugin, Input input);
inline std::string check_problem(Input input) {
  return check_problem_with(*assay_plugin_entry(ASSAY_ABI_MAJOR), input);
}

} // namespace assay::fuzz
