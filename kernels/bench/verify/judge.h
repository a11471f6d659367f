// SPDX-License-Identifier: Apache-2.0
// Who judges rows of a timed call, whatever its family.
#pragma once

#include "kernels/bench/verify/verify_outputs.h"

namespace assay::bench {

/// One output row: a query row (request * q_len + token) or a row of a merge, and a head.
struct SampledRow {
  int row, head;
};

/// A call that has run. Its kernel's family says what params are.
struct JudgedCall {
  std::string kernel; // name in the kernel table
  assay_target target;
  const void *params;      // as the kernel takes them: arrays behind Memory, cascade levels here
  const void *host_params; // attention: the same with lengths, tables and offsets in this process
  const void *o;           // as in params
  const float *lse;
  std::vector<SampledRow> rows;
  std::function<std::string(const SampledRow &row)> row_name;
};

/// Judges the rows and adds to the verification.
using Judge = std::function<void(const JudgedCall &, const Memory &, Verification &)>;

/// The heads of sample_heads of the requests of sample_requests, all tokens and members of a group.
std::vector<SampledRow> sampled_rows(const std::vector<int32_t> &lengths, int tokens, int num_heads,
                                     int num_kv_heads);

/// `outputs` must outlive it.
std::function<std::string(const SampledRow &)> named_by(const CheckedOutputs &outputs,
                                                        int num_heads);

} // namespace assay::bench
