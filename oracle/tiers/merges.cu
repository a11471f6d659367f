// SPDX-License-Identifier: Apache-2.0
#include "oracle/tiers/merges_body.h"
#include "oracle/tiers/team.cuh"

namespace assay::oracle {
namespace bulk {
namespace {

constexpr int kMergeTeam = 128;

__global__ void __launch_bounds__(kMergeTeam) judge_merges(const __grid_constant__ MergeCall call) {
  __shared__ double parts[kMergeTeam / 32];
  Team<kMergeTeam> team{parts};
  MergeBody<Team<kMergeTeam>> body(call, team, static_cast<int>(blockIdx.x));
  for (int64_t pair = blockIdx.x; pair < call.pairs; pair += gridDim.x)
    body.run(pair);
}

} // namespace
} // namespace bulk

struct MergeJudge::Device {
  bulk::PackedArrays arrays;
  bulk::TeamResults results;
  bulk::Buffer scratch;
  const int blocks = bulk::blocks_at_once(bulk::judge_merges, bulk::kMergeTeam);
};

MergeJudge::MergeJudge() : device_(std::make_unique<Device>()) {}
MergeJudge::~MergeJudge() = default;

TierReport MergeJudge::judge(const MergeRows &rows, const CallOutputs &outputs,
                             const KernelModel &model, void *on_stream, bool elements) {
  if (const std::string reason = merges_refuse(rows); !reason.empty())
    throw std::invalid_argument("merges: " + reason);
  const auto stream = static_cast<cudaStream_t>(on_stream);
  bulk::MergeCall call = device_->arrays.upload(
      [&](const bulk::Place &place) { return bulk::make_merge_call(rows, outputs, model, place); },
      stream);
  if (call.pairs == 0) return {};
  const auto blocks = std::min(int64_t{device_->blocks}, call.pairs);
  call.scratch =
      device_->scratch.reserve<double>(static_cast<size_t>(blocks * 2 * call.most_states));
  return device_->results.of(
      call, rows.out, outputs.lse != nullptr, elements, stream, [&](const bulk::MergeCall &ready) {
        bulk::judge_merges<<<static_cast<unsigned>(blocks), bulk::kMergeTeam, 0, stream>>>(ready);
      });
}

} // namespace assay::oracle
