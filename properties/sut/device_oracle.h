// SPDX-License-Identifier: Apache-2.0
// The oracle on a GPU. Where kernels run in processes of their own, so does it: the harness has no
// driver then, as that would not survive their forks, and no kernel's process is trusted with a
// verdict.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "oracle/device/tiers.h"
#include "properties/sut/child.h"
#include "properties/sut/shared_memory.h"

namespace assay {

/// What a DeviceOracle is asked and what it says: declared for the wire.
struct JudgedCall {
  uint64_t shared_bytes = 0, used_bytes = 0; ///< bytes of the memory that both see; of the call
  /// Their pointers count from the begin of that memory.
  oracle::AttentionRows rows;
  const void *o = nullptr;
  const float *lse = nullptr;
  bool has_lse = false, has_order = false, replay_scores = false;
  assay_arithmetic arithmetic{};
  oracle::KeyOrder order;
};
struct JudgedReply {
  std::string error;
  bool refused = false;        ///< for what the call or its declared order is: the host says why
  std::vector<std::byte> rows; ///< oracle::TierRow
  std::vector<uint64_t> budgets;
  double device_ms = 0.0;
};
/// Not for two threads at once.
class DeviceOracle {
public:
  enum class Where {
    kOwnProcess,
    kThisProcess,
    kTwin ///< in a process of its own, by the same text on a processor: for machines without a GPU
  };
  explicit DeviceOracle(Where where);
  ~DeviceOracle();

  /// Every tier of the rows of a call: these lie in the buffers of `before`, and the outputs in
  /// those of `after`, whose inputs are the same. None where the GPU does not take the call.
  /// Throws std::runtime_error where the GPU or its process fails.
  std::optional<oracle::TierReport> judge(const Tensors &before, const Tensors &after,
                                          const oracle::AttentionRows &rows,
                                          const oracle::CallOutputs &outputs,
                                          const oracle::KernelModel &model);

private:
  class Judges;
  void start();
  std::optional<JudgedReply> ask(JudgedCall call);
  JudgedReply ask_process(const JudgedCall &call);

  const Where where_;
  SharedMemory shared_;
  Child child_;
  std::unique_ptr<Judges> judges_; ///< kThisProcess
};

namespace wire {
Message pack_judged_call(const JudgedCall &call);
JudgedCall unpack_judged_call(std::span<const std::byte> bytes);
Message pack_judged_reply(const JudgedReply &reply);
bool unpack_judged_reply(std::span<const std::byte> bytes, JudgedReply &reply);
} // namespace wire

} // namespace assay
