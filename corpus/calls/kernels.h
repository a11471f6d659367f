// SPDX-License-Identifier: Apache-2.0
// Our kernels behind calls that are wrong: what stands between an ABI and a launch can lose an
// offset, keep what an earlier call was given, or hold sizes in too few bits.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay::wrong_calls {

/// All of them, on the CPU executor. A kernel keeps what it remembers in its process.
const assay_plugin &plugin();
const assay_kernel *find_kernel(const char *name);
/// What is wrong with it, in a line; null where there is no such kernel.
const char *mistake(const char *name);

} // namespace assay::wrong_calls
