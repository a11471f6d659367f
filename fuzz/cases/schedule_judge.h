// SPDX-License-Identifier: Apache-2.0
// Schedules as inputs: what fuzz_schedule checks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fuzz/target.h"
#include "kernels/abi/plugin.h"
#include "properties/relate/outcome.h"

namespace assay::fuzz {

/// An input: which of a few small cases, the order of threads and blocks and when copies complete,
/// two bytes of a seed; then a byte a hold (kernels/simt/schedule.h), 1 to 63,488 points behind the
/// one before, in sixteen steps a power of two.
struct ScheduleInput {
  size_t subject = 0;
  ScheduleSpec schedule;
  std::vector<uint32_t> holds;
};
ScheduleInput read_schedule(Input input, size_t subjects);

/// Cases of one plugin's kernels under schedules. Keeps the first run of each case, under the
/// default schedule.
class ScheduleJudge {
public:
  explicit ScheduleJudge(const assay_plugin &plugin);

  size_t subjects() const { return subjects_.size(); }
  /// A run without hazards, with the bits of the default schedule where the kernel declares them.
  std::string check(Input input);

private:
  struct Subject {
    const assay_kernel *kernel;
    Problem problem;
    std::optional<Outcome> first;
  };
  std::vector<Subject> subjects_;
};

} // namespace assay::fuzz
