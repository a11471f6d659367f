// SPDX-License-Identifier: Apache-2.0
// The one loop that decides a call: every output against its reference.
#pragma once

#include <functional>
#include <vector>

#include "kernels/abi/assay.h"
#include "oracle/judge/call.h"
#include "oracle/judge/verdict.h"

namespace assay::oracle {

/** What a call wrote, in the layout of its parameters. Apart from them, so that the inputs of a
    call in place can be those from before it. `lse` null: it writes none. */
struct CallOutputs {
  const void *o;
  const float *lse;
};

/**
 * Which rows are recomputed in interval arithmetic besides the first with a finding; empty: none.
 * A miss throws std::logic_error: an oracle that is wrong proves nothing about the kernel.
 */
struct CertifySample {
  std::function<bool(int row, int head, size_t keys)> row; ///< keys: 0 for merges
  std::function<std::vector<int>(int row, int head)> dims; ///< of such a row
};

/** All pointers are host pointers; outputs are read from `outputs` alone. */
Report judge_call(const assay_paged_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify = {});
Report judge_call(const assay_cascade_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify = {});
Report judge_call(const assay_merge_state_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify = {});
Report judge_call(const assay_merge_states_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify = {});

} // namespace assay::oracle
