// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/groups.cuh"
#include "oracle/device/team.cuh"
#include "oracle/device/tiers_body.h"

namespace assay::oracle {
namespace device {
namespace {

constexpr int kRowTeam = 256;
constexpr int64_t kMostScratch = int64_t{512} << 20;

__global__ void __launch_bounds__(kRowTeam) judge_rows(const __grid_constant__ TierCall call) {
  __shared__ TeamMemory memory;
  __shared__ double parts[kRowTeam / 32];
  Team<kRowTeam> team{parts};
  RowBody<Team<kRowTeam>> body(call, team, memory, static_cast<int>(blockIdx.x));
  for (int64_t pair = blockIdx.x; pair < call.pairs; pair += gridDim.x)
    body.run(pair);
}

/// Several launches that share keys between rows are cheaper than one that does not.
bool large(const AttentionRows &rows) {
  constexpr int64_t kLeast = 1 << 18; // (row, head) pairs times keys
  int64_t keys = 0;
  for (int row = 0; row < rows.out.rows(); ++row)
    keys += rows.keys(row);
  return keys * rows.out.heads >= kLeast;
}

} // namespace
} // namespace device

struct TierJudge::Device {
  device::PackedArrays arrays;
  device::TeamResults results;
  device::Buffer scratch, block;
  device::GroupDevice groups;
  const int blocks = device::blocks_at_once(device::judge_rows, device::kRowTeam);
  cudaStream_t stream = nullptr;

  Device() { device::require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream"); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device() { cudaStreamDestroy(stream); }
};

TierJudge::TierJudge() : device_(std::make_unique<Device>()) {}
TierJudge::~TierJudge() = default;

void *TierJudge::own_stream() { return device_->stream; }

std::byte *TierJudge::upload(const std::byte *block, size_t bytes, void *on_stream) {
  device_->block.roomy<std::byte>(bytes);
  return device_->block.copy(block, bytes, static_cast<cudaStream_t>(on_stream));
}

TierReport TierJudge::judge(const AttentionRows &rows, const CallOutputs &outputs,
                            const KernelModel &model, void *on_stream, bool elements) {
  if (device::large(rows) && groups_refuse(rows, model).empty())
    return judge_groups(rows, outputs, model, on_stream, elements);
  return judge_rows(rows, outputs, model, on_stream, elements);
}

TierReport TierJudge::judge_rows(const AttentionRows &rows, const CallOutputs &outputs,
                                 const KernelModel &model, void *on_stream, bool elements) {
  if (const std::string reason = tiers_refuse(rows, model); !reason.empty())
    throw std::invalid_argument("tiers: " + reason);
  const auto stream = static_cast<cudaStream_t>(on_stream);
  const device::TierArrays arrays = device::arrays_of(rows, model);
  device::TierCall call = device_->arrays.upload(
      [&](const device::Place &place) {
        return device::make_tier_call(rows, outputs, model, arrays, place);
      },
      stream);
  if (call.pairs == 0) return {};
  call.scratch.slices = std::max(2 * device::kRowTeam / rows.out.dims, 1);
  const int64_t fit = std::max<int64_t>(device::kMostScratch / call.scratch.bytes(), 1);
  const auto blocks = std::min({int64_t{device_->blocks}, fit, call.pairs});
  call.scratch_base =
      device_->scratch.roomy<unsigned char>(static_cast<size_t>(blocks * call.scratch.bytes()));
  return device_->results.of(
      call, rows.out, outputs.lse != nullptr, elements, stream, [&](const device::TierCall &ready) {
        device::judge_rows<<<static_cast<unsigned>(blocks), device::kRowTeam, 0, stream>>>(ready);
      });
}

TierReport TierJudge::judge_groups(const AttentionRows &rows, const CallOutputs &outputs,
                                   const KernelModel &model, void *on_stream, bool elements) {
  if (const std::string reason = groups_refuse(rows, model); !reason.empty())
    throw std::invalid_argument("groups: " + reason);
  return device_->groups.judge(rows, outputs, model, elements,
                               static_cast<cudaStream_t>(on_stream));
}

} // namespace assay::oracle
