// SPDX-License-Identifier: Apache-2.0
// Every output of an attention call at production size, decided on the GPU that holds it: T0 and
// the LSE. What is not certainly inside there is named, and decided on the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oracle/judge/judge.h"
#include "oracle/rows/read.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/** What an output must be; `bound` NaN: nothing is claimed. */
struct BulkElement {
  double mid, rad, bound;
};

struct BulkReport {
  uint64_t elements = 0; ///< outputs and LSEs looked at
  uint64_t claimed = 0;  ///< of those, the ones the oracle makes a claim about
  uint64_t no_claim = 0;
  double worst_ratio = 0.0; ///< |got - exact| / bound, over outputs that are inside
  double worst_ratio_lse = 0.0;
  uint64_t open_rows = 0;    ///< rows with an element that is not certainly inside
  std::vector<RowHead> open; ///< the first kMaxOpen of them, sorted
  uint64_t one_pass = 0;     ///< rows that one pass over the keys decided
  double passes_ms = 0.0;    ///< of the GPU
};

/** Why the passes cannot take a call; empty: they can. */
std::string bulk_refuses(const AttentionRows &rows, const KernelModel &model);

/** Scratch and passes; not for two threads at once. Scratch stays below 64 MB. */
class BulkJudge {
public:
  static constexpr int kMaxOpen = 4096;

  BulkJudge();
  ~BulkJudge();
  BulkJudge(const BulkJudge &) = delete;
  BulkJudge &operator=(const BulkJudge &) = delete;

  /**
   * `rows` hold places in arrays of the current device, and so do the outputs. All launches go to
   * `stream` (a cudaStream_t); returns when they are done. Throws std::invalid_argument where
   * bulk_refuses, OrderError as the host's judge, std::runtime_error when the device fails.
   * `elements`: what every output was held against, [rows, heads, dims and the LSE].
   */
  BulkReport judge(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
                   void *stream = nullptr, std::vector<BulkElement> *elements = nullptr);

private:
  struct Device;
  std::unique_ptr<Device> device_;
};

} // namespace assay::oracle
