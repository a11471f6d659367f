// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/plan_run.h"

#include <algorithm>

#include "kernels/plan/plan_kernel.cuh"
#include "kernels/simt/launch.h"

namespace assay::fuzz {

PlannerRun run_planner(const SplitPlanShape &shape, std::span<const int32_t> lens) {
  simt::Stream stream;
  auto *seq_lens = static_cast<int32_t *>(stream.memory.allocate(
      lens.size_bytes(), simt::Access::kReadOnly, simt::InitState::kDefined, "seq_lens"));
  std::copy(lens.begin(), lens.end(), seq_lens);
  const auto bytes = static_cast<size_t>(plan_layout(shape).bytes);
  void *plan =
      stream.memory.allocate(bytes, simt::Access::kReadWrite, simt::InitState::kUndefined, "plan");
  const n_simt::PlanParams params = n_simt::plan_params(shape, seq_lens, plan);
  simt::LaunchConfig config;
  config.block = n_simt::kPlanThreads;
  config.shared_bytes = sizeof(n_simt::PlanSharedStorage);
  const auto body = [&] { n_simt::plan_kernel<n_simt::kPlanThreads>(params); };
  if (simt::launch(&stream, config, body) != simt::LaunchStatus::kOk)
    return {{}, stream.hazards.empty() ? "stopped" : stream.hazards.back().message};
  const auto *first = static_cast<const std::byte *>(plan);
  return {{first, first + bytes}, ""};
}

} // namespace assay::fuzz
