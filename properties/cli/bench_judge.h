// SPDX-License-Identifier: Apache-2.0
// The oracle's verdict on rows that `assay bench --verify` sampled.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/bench/verify/judge.h"

namespace assay {

/// Judges every element of the rows (T0, LSE; T1 and T2 with the declared key order) by what the
/// call's kernel, one of `plugin`, declares. Several threads.
bench::Judge bench_judge(const assay_plugin &plugin);

} // namespace assay
