// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/lanes.cuh"
#include "oracle/device/merges_body.h"
#include "oracle/device/team.cuh"

namespace assay::oracle {
namespace device {
namespace {

constexpr int kMergeTeam = 128;

__global__ void __launch_bounds__(kMergeTeam) judge_merges(const __grid_constant__ MergeCall call) {
  __shared__ double parts[kMergeTeam / 32];
  Team<kMergeTeam> team{parts};
  MergeBody<Team<kMergeTeam>, LanesOf<32>> body(call, team, static_cast<int>(blockIdx.x));
  for (int64_t pair = blockIdx.x; pair < call.pairs; pair += gridDim.x)
    body.run(pair);
}

} // namespace
} // namespace device

struct MergeJudge::Device {
  device::PackedArrays arrays;
  device::TeamResults results;
  device::Buffer scratch;
  const int blocks = device::blocks_at_once(device::judge_merges, device::kMergeTeam);
};

MergeJudge::MergeJudge() : device_(std::make_unique<Device>()) {}
MergeJudge::~MergeJudge() = default;

TierReport MergeJudge::judge(const MergeRows &rows, const CallOutputs &outputs,
                             const KernelModel &model, void *on_stream, bool elements) {
  if (const std::string reason = merges_refuse(rows); !reason.empty())
    throw std::invalid_argument("merges: " + reason);
  const auto stream = static_cast<cudaStream_t>(on_stream);
  device::MergeCall call = device_->arrays.upload(
      [&](const device::Place &place) {
        return device::make_merge_call(rows, outputs, model, place);
      },
      stream);
  if (call.pairs == 0) return {};
  const auto blocks = std::min(int64_t{device_->blocks}, call.pairs);
  call.scratch =
      device_->scratch.reserve<double>(static_cast<size_t>(blocks * call.team_scratch()));
  return device_->results.of(
      call, rows.out, outputs.lse != nullptr, elements, stream,
      [&](const device::MergeCall &ready) {
        device::judge_merges<<<static_cast<unsigned>(blocks), device::kMergeTeam, 0, stream>>>(
            ready);
      });
}

} // namespace assay::oracle
