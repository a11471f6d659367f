// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/plan_run.h"

#include <algorithm>

#include "kernels/plan/plan_kernel.cuh"
#include "kernels/plan/tree_kernel.cuh"
#include "kernels/simt/launch.h"

namespace assay::fuzz {

namespace {

int32_t *read_only(simt::Stream &stream, std::span<const int32_t> values, const char *name) {
  auto *p = static_cast<int32_t *>(stream.memory.allocate(
      values.size_bytes(), simt::Access::kReadOnly, simt::InitState::kDefined, name));
  std::copy(values.begin(), values.end(), p);
  return p;
}

/// What stands behind the pages of a request is dead.
const int32_t *page_table(simt::Stream &stream, const TreeInput &in) {
  const auto stride = static_cast<size_t>(in.page_table_stride);
  int32_t *p = read_only(stream, {in.page_table, in.shape.batch * stride}, "page_table");
  for (int32_t r = 0; r < in.shape.batch; ++r) {
    const auto live = static_cast<size_t>(tiles_of(in.seq_lens[r], in.shape.page_size));
    stream.memory.mark_undefined(p + r * stride + live, (stride - live) * sizeof(int32_t));
  }
  return p;
}

void *plan_buffer(simt::Stream &stream, size_t bytes) {
  return stream.memory.allocate(bytes, simt::Access::kReadWrite, simt::InitState::kUndefined,
                                "plan");
}

template <class Body>
PlannerRun run(simt::Stream &stream, const simt::LaunchConfig &config, const Body &body,
               const void *plan, size_t bytes) {
  if (simt::launch(&stream, config, body) != simt::LaunchStatus::kOk)
    return {{}, stream.hazards.empty() ? "stopped" : stream.hazards.back().message};
  const auto *first = static_cast<const std::byte *>(plan);
  return {{first, first + bytes}, ""};
}

} // namespace

PlannerRun run_planner(const SplitPlanShape &shape, std::span<const int32_t> lens) {
  simt::Stream stream;
  const auto bytes = static_cast<size_t>(plan_layout(shape).bytes);
  void *plan = plan_buffer(stream, bytes);
  const n_simt::PlanParams params =
      n_simt::plan_params(shape, read_only(stream, lens, "seq_lens"), plan);
  simt::LaunchConfig config;
  config.block = n_simt::kPlanThreads;
  config.shared_bytes = sizeof(n_simt::PlanSharedStorage);
  return run(
      stream, config, [&] { n_simt::plan_kernel<n_simt::kPlanThreads>(params); }, plan, bytes);
}

PlannerRun run_tree_planner(const TreeInput &in, const SplitPlanShape &own) {
  constexpr int kThreads = 64; // a device has 1,024; the batches of the fuzzer are smaller
  simt::Stream stream;
  const auto batch = static_cast<size_t>(in.shape.batch);
  const size_t tree_bytes = own_plan_offset(in.shape);
  const auto bytes = tree_bytes + static_cast<size_t>(plan_layout(own).bytes);
  void *plan = plan_buffer(stream, bytes);
  n_simt::TreeKernelParams params;
  params.input = {in.shape, page_table(stream, in),
                  read_only(stream, {in.seq_lens, batch}, "seq_lens"), in.page_table_stride,
                  nullptr};
  params.output = tree_output(in.shape, plan);
  params.plan =
      n_simt::plan_params(own, params.input.seq_lens, static_cast<std::byte *>(plan) + tree_bytes,
                          params.output.covered);
  simt::LaunchConfig config;
  config.block = kThreads;
  config.shared_bytes = sizeof(n_simt::TreeKernelStorage);
  return run(
      stream, config, [&] { n_simt::tree_kernel<kThreads>(params); }, plan, bytes);
}

} // namespace assay::fuzz
