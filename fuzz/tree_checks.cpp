// SPDX-License-Identifier: Apache-2.0
#include "fuzz/tree_checks.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz/paths/plan_run.h"
#include "kernels/plan/host_plan.h"
#include "kernels/plan/tests/tree_audit.h"

namespace assay::fuzz {
namespace {

constexpr int kMaxPages = 320;

PrefixTreeShape read_shape(ByteReader &in) {
  PrefixTreeShape s;
  s.batch = in.integer(2, 40);
  s.q_len = in.integer(1, 8);
  s.query_rows = s.q_len * in.integer(1, 9);
  s.kv_heads = in.integer(1, 8);
  s.head_dim = std::array{64, 128, 256}[in.integer(0, 2)];
  s.kv_bytes = in.integer(1, 2);
  s.page_size = std::array{1, 16, 48, 64, 128, 1024}[in.integer(0, 5)];
  s.tile = s.head_dim == 256 ? 64 : 128;
  s.blocks = in.integer(1, 132);
  s.splits = in.integer(0, 1) == 0 ? 0 : in.integer(1, 100);
  s.max_rows = in.integer(0, 1) == 0 ? 1 << 20 : in.integer(1, 4096);
  return s;
}

} // namespace

TreeCase decode_tree_case(ByteReader &in) {
  TreeCase c;
  c.shape = read_shape(in);
  c.columns = kMaxPages;
  int32_t fresh = 0;
  for (int32_t r = 0; r < c.shape.batch; ++r) {
    const int32_t like = in.integer(0, 255), most = in.integer(0, 255), own = in.integer(0, 64);
    std::vector<int32_t> row(kMaxPages, -7); // behind the live part: anything
    int32_t pages = 0;
    if (like > 0 && r > 0) {
      const int32_t other = (like - 1) % r;
      pages = std::min(most, (c.lens[other] + c.shape.page_size - 1) / c.shape.page_size);
      std::copy_n(c.table.begin() + int64_t{other} * kMaxPages, pages, row.begin());
    }
    for (int32_t i = 0; i < own; ++i)
      row[pages++] = fresh++;
    c.table.insert(c.table.end(), row.begin(), row.end());
    const int32_t unused = in.integer(0, 255) % c.shape.page_size; // unused slots of the last page
    c.lens.push_back(pages > 0 ? pages * c.shape.page_size - unused : 0);
  }
  return c;
}

std::string tree_difference(const TreeCase &c, const HostTree &host) {
  const SplitPlanShape own{.batch = c.shape.batch,
                           .head_tiles = c.shape.kv_heads,
                           .workers = c.shape.blocks,
                           .tile = c.shape.tile};
  PlannerRun device = run_tree_planner(c.input(), own);
  if (!device.hazard.empty()) return "the device planner: " + device.hazard;
  const TreeOutput tree = tree_output(c.shape, device.plan.data());
  const PrefixTree view = host.view();
  const auto differ = [](const auto *a, const auto *b, int64_t count) {
    return std::memcmp(a, b, static_cast<size_t>(count) * sizeof *a) != 0;
  };
  const int32_t items = host.num_items(), batch = c.shape.batch;
  const std::string of_the_host = " of the device's tree are not the host's";
  if (differ(tree.items, view.items, items + c.shape.blocks)) return "items" + of_the_host;
  if (differ(tree.coords, view.coords, batch * kTreeLevels)) return "coords" + of_the_host;
  if (differ(tree.covered, host.covered(), batch)) return "covered keys" + of_the_host;
  for (int32_t i = 0; i < items; ++i)
    if (const TreeItem &item = view.items[i];
        differ(tree.members + item.first_member, view.members + item.first_member,
               item.rows / c.shape.query_rows))
      return "members" + of_the_host;
  const HostPlan plan(own, c.lens.data(), host.covered());
  if (differ(device.plan.data() + own_plan_offset(c.shape),
             static_cast<const std::byte *>(plan.data()), static_cast<int64_t>(plan.bytes())))
    return "own keys" + of_the_host;
  return "";
}

std::string check_tree(const TreeCase &c) {
  const HostTree tree(c.input());
  const std::string unsound =
      tree_violation(c.input(), tree.view(), {tree.covered(), static_cast<size_t>(c.shape.batch)});
  return unsound.empty() ? tree_difference(c, tree) : unsound;
}

} // namespace assay::fuzz
