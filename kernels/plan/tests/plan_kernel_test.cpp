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
    // The last few have as many requests as shared memory has room for, and more.
    const int batch = i == 0   ? 1
                      : i > 57 ? n_simt::kStagedRequests + i - 58
                               : 1 + static_cast<int>(rng() % (i % 5 == 0 ? 700 : 20));
    SplitPlanShape shape = {.batch = batch,
                            .head_tiles = 1 + static_cast<int>(rng() % 8),
                            .splits = i % 7 == 3 ? 3 : 0,
                            .workers = 1 + static_cast<int>(rng() % 300),
                            .tile = 64,
                            .span = 0};
    if (shape.splits > 0) shape.workers = batch * shape.splits;
    simt::Stream stream;
    auto *lens = static_cast<int32_t *>(stream.memory.allocate(
        batch * 4, simt::Access::kReadOnly, simt::InitState::kDefined, "seq_lens"));
    for (int r = 0; r < batch; ++r)
      lens[r] = rng() % 4 == 0 ? 0 : static_cast<int>(rng() % 2000);
    const PlanLayout layout = plan_layout(shape);
    auto *plan = static_cast<char *>(stream.memory.allocate(layout.bytes, simt::Access::kReadWrite,
                                                            simt::InitState::kUndefined, "plan"));
    const n_simt::PlanParams params = n_simt::plan_params(shape, lens, plan);
    stream.schedule.order = i % 2 ? simt::Order::kSeeded : simt::Order::kDescending;
    stream.schedule.seed = i;
    simt::LaunchConfig config;
    config.block = n_simt::kPlanThreads;
    config.shared_bytes = sizeof(n_simt::PlanSharedStorage);
    ASSERT_EQ(
        simt::launch(&stream, config, [&] { n_simt::plan_kernel<n_simt::kPlanThreads>(params); }),
        simt::LaunchStatus::kOk)
        << stream.hazards.back().message;
    const HostPlan host(shape, lens);
    ASSERT_EQ(static_cast<int64_t>(host.bytes()), layout.bytes);
    ASSERT_EQ(std::memcmp(plan, host.data(), host.bytes()), 0) << "batch " << batch;
  }
}

} // namespace
} // namespace assay
