// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/groups.cuh"

namespace assay::oracle {

struct TierJudge::Device {
  device::Buffer block;
  device::GroupDevice groups;
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
                            const KernelModel &model, void *on_stream,
                            const JudgeOptions &options) {
  if (const std::string reason = tiers_refuse(rows, model); !reason.empty())
    throw std::invalid_argument("tiers: " + reason);
  return device_->groups.judge(rows, outputs, model, options, static_cast<cudaStream_t>(on_stream));
}

} // namespace assay::oracle
