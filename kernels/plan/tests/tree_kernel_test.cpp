// SPDX-License-Identifier: Apache-2.0
// The device's planner of trees, on the executor, writes the host's bytes.
#include "kernels/plan/host_plan.h"
#include "kernels/plan/tests/drawn_tree.h"
#include "kernels/plan/tree_kernel.cuh"
#include "kernels/simt/launch.h"

#include <gtest/gtest.h>

#include <cstring>

namespace assay {
namespace {

constexpr int kThreads = 64;

/// What the device's planner writes, on the executor.
class DeviceTree {
public:
  DeviceTree(const PrefixTreeShape &shape, const Requests &in, int seed) : shape_(shape) {
    own_ = {.batch = shape.batch, .head_tiles = 2, .workers = 20, .tile = 64};
    params_.input = {shape, read_only(in.table, "page_table"), read_only(in.lens, "seq_lens"),
                     in.columns, nullptr};
    params_.output = tree_output(shape, buffer(prefix_tree_layout(shape).bytes, "tree"));
    own_plan_ = buffer(plan_layout(own_).bytes, "own");
    params_.plan =
        n_simt::plan_params(own_, params_.input.seq_lens, own_plan_, params_.output.covered);
    stream_.schedule.order = seed % 2 ? simt::Order::kSeeded : simt::Order::kDescending;
    stream_.schedule.seed = static_cast<uint32_t>(seed);
    launch(kThreads, sizeof(n_simt::TreeKernelStorage),
           [&] { n_simt::tree_kernel<kThreads>(params_); });
  }

  /// Plans again for other lengths. The tree stays.
  void plan_lengths(const std::vector<int32_t> &lens) {
    const n_simt::PlanParams plan = n_simt::plan_params(own_, read_only(lens, "new lengths"),
                                                        own_plan_, params_.output.covered);
    launch(n_simt::kPlanThreads, sizeof(n_simt::PlanSharedStorage),
           [&] { n_simt::plan_kernel<n_simt::kPlanThreads>(plan); });
  }

  /// Says which part is not the host's, where the plan is for `lens`.
  std::string difference(const HostTree &host, const std::vector<int32_t> &lens) const {
    const PrefixTree view = host.view();
    const TreeOutput &tree = params_.output;
    const auto differ = [](const auto *a, const auto *b, size_t count) {
      return std::memcmp(a, b, count * sizeof *a) != 0;
    };
    const auto batch = static_cast<size_t>(shape_.batch);
    if (differ(tree.items, view.items, static_cast<size_t>(host.num_items() + shape_.blocks)))
      return "items";
    if (differ(tree.coords, view.coords, batch * kTreeLevels)) return "coords";
    if (differ(tree.covered, host.covered(), batch)) return "covered";
    for (int i = 0; i < host.num_items(); ++i)
      if (const TreeItem &item = view.items[i];
          differ(tree.members + item.first_member, view.members + item.first_member,
                 static_cast<size_t>(item.rows / shape_.query_rows)))
        return "members";
    const HostPlan plan(own_, lens.data(), host.covered());
    return std::memcmp(own_plan_, plan.data(), plan.bytes()) == 0 ? "" : "own keys";
  }

private:
  int32_t *read_only(const std::vector<int32_t> &values, const char *name) {
    auto *p = static_cast<int32_t *>(stream_.memory.allocate(std::max<size_t>(values.size(), 1) * 4,
                                                             simt::Access::kReadOnly,
                                                             simt::InitState::kDefined, name));
    std::copy(values.begin(), values.end(), p);
    return p;
  }
  void *buffer(int64_t bytes, const char *name) {
    return stream_.memory.allocate(static_cast<size_t>(bytes), simt::Access::kReadWrite,
                                   simt::InitState::kUndefined, name);
  }
  template <class Body>
  void launch(int threads, size_t shared_bytes, const Body &body) {
    simt::LaunchConfig config;
    config.block = static_cast<uint32_t>(threads);
    config.shared_bytes = shared_bytes;
    const bool ok = simt::launch(&stream_, config, body) == simt::LaunchStatus::kOk;
    ASSERT_TRUE(ok) << stream_.hazards.back().message;
  }

  PrefixTreeShape shape_;
  SplitPlanShape own_;
  simt::Stream stream_;
  n_simt::TreeKernelParams params_;
  void *own_plan_;
};

TEST(TreeKernel, equals_the_host_finder_byte_for_byte) {
  std::mt19937 rng(6);
  for (int i = 0; i < 40; ++i) {
    const PrefixTreeShape shape = draw_shape(rng);
    const Requests in = draw(rng, shape, i % 4 == 0 ? 600 : 30);
    EXPECT_EQ(DeviceTree(shape, in, i).difference(HostTree(in.input(shape)), in.lens), "") << i;
  }
}

/// A block sorts 32 keys in a warp, and more through shared memory.
TEST(TreeKernel, equals_the_host_finder_for_as_many_requests_as_a_tree_may_have) {
  std::mt19937 rng(7);
  for (const int batch : {32, 33, 64, 65, 200, 513, kMaxTreeBatch}) {
    PrefixTreeShape shape = draw_shape(rng);
    shape.batch = batch;
    shape.max_rows = 1 << 22;
    const Requests in = draw(rng, shape, 12);
    const HostTree host(in.input(shape));
    EXPECT_EQ(violation(shape, in, host), "");
    EXPECT_EQ(DeviceTree(shape, in, batch).difference(host, in.lens), "") << batch;
  }
}

TEST(TreeKernel, leaves_the_tree_where_only_lengths_have_grown) {
  std::mt19937 rng(8);
  for (int i = 0; i < 10; ++i) {
    const PrefixTreeShape shape = draw_shape(rng);
    const Requests in = draw(rng, shape, 30);
    DeviceTree device(shape, in, i);
    std::vector<int32_t> lens = in.lens;
    for (int32_t &len : lens)
      len += static_cast<int32_t>(rng() % 3 * rng() % 100);
    device.plan_lengths(lens);
    EXPECT_EQ(device.difference(HostTree(in.input(shape)), lens), "") << i;
  }
}

} // namespace
} // namespace assay
