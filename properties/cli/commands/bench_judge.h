// SPDX-License-Identifier: Apache-2.0
// The oracle's verdict on calls that `assay bench --verify` timed.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/bench/verify/judge.h"

namespace assay {

/// Judges by what the call's kernel, one of `plugin`, declares. On a GPU every output of an
/// attention call, where it lies (T0 and the LSE); everywhere the sampled rows in every tier, on
/// several threads. Throws std::logic_error where the two disagree about T0.
bench::Judge bench_judge(const assay_plugin &plugin);

} // namespace assay
