// SPDX-License-Identifier: Apache-2.0
// The report of a whole call whose arrays lie elsewhere: decided there as far as it can be, and the
// rest here.
#pragma once

#include <functional>

#include "oracle/device/merges.h"
#include "oracle/judge/judge.h"

namespace assay::oracle {

/** Where the arrays lie. */
struct Elsewhere {
  std::function<TierReport(const AttentionRows &, const CallOutputs &, const KernelModel &)> rows;
  std::function<TierReport(const MergeRows &, const CallOutputs &, const KernelModel &)> merges;
  Memory memory; ///< reads it from here, in pieces
};

/**
 * Every row. What cannot be judged there is judged here, through `memory`, and so is a sample of up
 * to 64 pairs: those that are nearly outside as one first, in more directions than that of their
 * error. Throws std::logic_error where the sample is judged otherwise there.
 */
Report whole_report(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                    const Elsewhere &there, int threads);

} // namespace assay::oracle
