// SPDX-License-Identifier: Apache-2.0
// Our kernels behind calls that are wrong: what stands between an ABI and a launch can lose an
// offset, keep what an earlier call was given, or hold sizes in too few bits.
#pragma once

#include <string_view>

#include "kernels/abi/kernel_table.h"

namespace assay::wrong_calls {

/// All of them, on the CPU executor; calls.csv says what is wrong with each. A kernel keeps what it
/// remembers in its process.
const assay_plugin &plugin();
/// Null when there is none of that name.
const assay_kernel *find_kernel(std::string_view name);

} // namespace assay::wrong_calls
