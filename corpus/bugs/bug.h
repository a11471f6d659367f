// SPDX-License-Identifier: Apache-2.0
// The mistakes that the kernels of this folder can make, one at a time.
#pragma once

namespace assay::bugs {

/// Named as in bugs.csv, where each has its report and its cause, and as its kernel in the plugin.
enum class Bug {
  none,
#define ASSAY_BUG(name, Kernel) name,
#include "corpus/bugs/bugs.def"
#undef ASSAY_BUG
};

/// The bug of the kernel that runs on this thread.
extern thread_local Bug active;
inline bool is(Bug bug) { return active == bug; }
/// The mistake is to read a copy that the kernel made at an earlier call, in memory of its own.
inline bool reads_own_copy() {
  return is(Bug::lengths_of_the_first_call) || is(Bug::table_of_the_first_call);
}

} // namespace assay::bugs
