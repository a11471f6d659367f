// SPDX-License-Identifier: Apache-2.0
// The kernels that a target of this folder runs.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay::fuzz {

/// The library's; of a planted target the mutants' (plant.cpp), one of which is active.
const assay_plugin &kernels_under_test();

} // namespace assay::fuzz
