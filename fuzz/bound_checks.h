// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/target.h"
#include "kernels/abi/plugin.h"
#include "oracle/tests/emulation.h"

namespace assay::fuzz {

/// What a control makes wrong; all zero in the target itself.
struct BoundSabotage {
  double budget = 1; ///< factor on every budget of the emulated rows
  oracle::test::Mutant mutant = oracle::test::Mutant::kNone;
};

/// First byte: bit 0 chooses between the emulated kernel, whose arithmetic, tiles, states and
/// splits the input sets, and the simt kernels of the plugin. Then a palette of values, then the
/// rest.
std::string check_bound_with(const assay_plugin &plugin, Input input, bool replay_scores,
                             const BoundSabotage &sabotage = {});
inline std::string check_bound(Input input) {
  return check_bound_with(*assay_plugin_entry(ASSAY_ABI_MAJOR), input, true);
}

} // namespace assay::fuzz
