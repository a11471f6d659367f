// SPDX-License-Identifier: Apache-2.0
// The device planner, on the executor, writes the host planner's bytes.
#include "kernels/plan/host_plan.h"
#include "kernels/plan/plan_kernel.cuh"
#include "kernels/simt/launch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace assay {
namespace {

TEST(PlanKernel, equals_the_host_planner_byte_for_byte) {
  std::mt19937 rng(5);
  for (int i = 0; i < 60; ++i) {
    const int batch = i == 0 ? 1 : 1 + static_cast<int>(rng() % (i % 5 == 0 ? 700 : 20));
    const SplitPlanShape shape = {.batch = batch,
                                  .units = 1 + static_cast<int>(rng() % 8),
                                  .splits = 0,
                                  .workers = 1 + static_cast<int>(rng() % 300),
                                  .tile = 64};
    simt::Stream stream;
    const auto allocate = [&](size_t n, simt::Access access, const char *tag) {
      return static_cast<int32_t *>(stream.memory.allocate(n * 4, access,
                                                           access == simt::Access::kReadOnly
                                                               ? simt::InitState::kDefined
                                                               : simt::InitState::kUndefined,
                                                           tag));
    };
    auto *lens = allocate(batch, simt::Access::kReadOnly, "seq_lens");
    for (int r = 0; r < batch; ++r)
      lens[r] = rng() % 4 == 0 ? 0 : static_cast<int>(rng() % 2000);
    auto *plan = allocate(plan_entries(shape), simt::Access::kReadWrite, "plan");
    const n_simt::PlanParams params{shape, lens, plan, plan + batch + 1};
    stream.schedule.order = i % 2 ? simt::Order::kSeeded : simt::Order::kDescending;
    stream.schedule.seed = i;
    simt::LaunchConfig config;
    config.block = n_simt::kPlanThreads;
    config.shared_bytes = sizeof(n_simt::PlanSharedStorage);
    ASSERT_EQ(
        simt::launch(&stream, config, [&] { n_simt::plan_kernel<n_simt::kPlanThreads>(params); }),
        simt::LaunchStatus::kOk)
        << stream.hazards.back().message;
    const std::vector<int32_t> host = host_plan(shape, lens);
    ASSERT_EQ(std::memcmp(plan, host.data(), host.size() * 4), 0) << "batch " << batch;
  }
}

} // namespace
} // namespace assay
