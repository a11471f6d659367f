// SPDX-License-Identifier: Apache-2.0
// The GPU's text of merges, run by one thread.
#include <stdexcept>

#include "oracle/device/merges_body.h"
#include "oracle/device/one_thread.h"

namespace assay::oracle {

TierReport judge_merges_here(const MergeRows &rows, const CallOutputs &outputs,
                             const KernelModel &model, bool elements) {
  if (const std::string reason = merges_refuse(rows); !reason.empty())
    throw std::invalid_argument("merges: " + reason);
  device::MergeCall call = device::make_merge_call(rows, outputs, model, device::in_place);
  device::Results results(call.pairs, rows.out.dims, elements);
  results.pass_to(call);
  std::vector<double> scratch(static_cast<size_t>(call.team_scratch()));
  call.scratch = scratch.data();
  device::OneThread team;
  device::MergeBody<device::OneThread, device::OneThreadLanes> body(call, team, 0);
  for (int64_t pair = 0; pair < call.pairs; ++pair)
    body.run(pair);
  return results.report(rows.out, outputs.lse != nullptr);
}

} // namespace assay::oracle
