// SPDX-License-Identifier: Apache-2.0
// Every output of a call of merges, on the GPU that holds it or, by the same text, here.
#pragma once

#include "oracle/device/tiers.h"

namespace assay::oracle {

/** Why a call of merges cannot be judged so; empty: it can. */
std::string merges_refuse(const MergeRows &rows);

/** The GPU's text, run here, one row after another. Of elements the first tier alone is used. */
TierReport judge_merges_here(const MergeRows &rows, const CallOutputs &outputs,
                             const KernelModel &model, bool elements = false);

/** On the current device; not for two threads at once. */
class MergeJudge {
public:
  MergeJudge();
  ~MergeJudge();
  MergeJudge(const MergeJudge &) = delete;
  MergeJudge &operator=(const MergeJudge &) = delete;

  /** As TierJudge::judge. */
  TierReport judge(const MergeRows &rows, const CallOutputs &outputs, const KernelModel &model,
                   void *stream = nullptr, bool elements = false);

private:
  struct Device;
  std::unique_ptr<Device> device_;
};

} // namespace assay::oracle
