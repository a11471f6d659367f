// SPDX-License-Identifier: Apache-2.0
// The one loop that decides a call: every output against its reference.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "oracle/judge/problems.h"
#include "oracle/judge/verdict.h"

namespace assay::oracle {

/**
 * Which rows are recomputed in interval arithmetic besides the first with a finding; empty: none.
 * A miss throws std::logic_error: an oracle that is wrong proves nothing about the kernel.
 */
struct CertifySample {
  std::function<bool(int row, int head, size_t keys)> row; ///< keys: 0 for merges
  std::function<std::vector<int>(int row, int head)> dims; ///< dims of such a row
};

/** Inputs and outputs are read through `memory`; outputs from `outputs` alone. */
Report judge_call(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  const CertifySample &certify = {}, const Memory &memory = {});

/** Of some rows, all heads. */
Report judge_some(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  std::span<const int> chosen, const CertifySample &certify = {},
                  const Memory &memory = {});

struct RowHead {
  int row, head;
};

/** Of some pairs, each handed on. */
void judge_pairs(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                 std::span<const RowHead> chosen, const CertifySample &certify,
                 const std::function<void(const RowHead &, const Report &)> &each,
                 const Memory &memory = {});

/** The one (row, head). */
Report judge_one(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                 int row, int head, const Memory &memory = {});

} // namespace assay::oracle
