// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/groups_call.h"

#include <algorithm>
#include <numeric>

#include "oracle/device/waves.h"

namespace assay::oracle::device {
namespace {

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Groups of all lists, rows of a list together; no launch is said yet.
std::vector<KeyGroup> groups_of(const AttentionRows &rows) {
  const int kv_heads = rows.heads.back().kv_head + 1, share = rows.out.heads / kv_heads;
  std::vector<int> order(rows.list.size());
  std::iota(order.begin(), order.end(), 0);
  const auto list_of = [&](int row) { return rows.list[static_cast<size_t>(row)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return list_of(a) < list_of(b); });
  std::vector<KeyGroup> groups;
  for (size_t first = 0, last = 0; first < order.size(); first = last) {
    const int list = list_of(order[first]);
    while (last < order.size() && list_of(order[last]) == list)
      ++last;
    const int32_t run_keys = keys_of_runs(rows, list);
    const int pairs = static_cast<int>(last - first) * share;
    for (int kv_head = 0; kv_head < kv_heads; ++kv_head)
      for (int from = 0; from < pairs; from += kGroupPairs) {
        KeyGroup group{};
        group.list = list;
        group.kv_head = kv_head;
        group.run_keys = run_keys;
        group.pairs = std::min(kGroupPairs, pairs - from);
        for (int i = 0; i < group.pairs; ++i) {
          const int row = order[first + static_cast<size_t>((from + i) / share)];
          const auto at = static_cast<size_t>(row);
          group.row[i] = row;
          group.head[i] = kv_head * share + (from + i) % share;
          if (rows.begin[at] == rows.end[at]) continue;
          const bool none = group.begin == group.end;
          group.begin = none ? rows.begin[at] : std::min(group.begin, rows.begin[at]);
          group.end = std::max(group.end, rows.end[at]);
        }
        group.stride = static_cast<int32_t>(up(group.end - group.begin, kTileKeys) * kTileKeys);
        groups.push_back(group);
      }
  }
  return groups;
}

/// Units of a launch, from the sizes of its groups.
void cut(std::vector<KeyGroup> &groups, GroupWave &wave, const GroupSizes &sizes) {
  const auto first = groups.begin() + wave.first_group, last = first + wave.groups;
  int64_t tiles = 0;
  for (auto group = first; group != last; ++group)
    tiles += group->stride / kTileKeys;
  const int64_t each = std::max<int64_t>(up(tiles, sizes.units), sizes.least_tiles);
  wave.unit_keys = static_cast<int32_t>(each * kTileKeys);
  for (auto group = first; group != last; ++group) {
    group->first_unit = wave.units;
    group->units = static_cast<int32_t>(up(group->stride, wave.unit_keys));
    wave.units += group->units;
  }
}

} // namespace

GroupPlan plan_groups(const AttentionRows &rows, const TierArrays &arrays, bool tiny,
                      const GroupSizes &sizes) {
  constexpr int64_t kColumnBytes =
      kGroupSums * sizeof(double) + 2 * sizeof(double) + 2 * sizeof(float) + sizeof(PairColumn);
  constexpr int64_t kStripeTiles = 8, kMostStripes = 64;
  GroupPlan plan;
  plan.groups = groups_of(rows);
  const int sink = rows.sinks ? 1 : 0;
  const int64_t slot_bytes = (tiny ? kGroupKinds : kOfTiny) * static_cast<int64_t>(sizeof(double));
  const auto tiles_of = [&](int row) {
    const auto at = static_cast<size_t>(row);
    return arrays.first_tile[at + 1] - arrays.first_tile[at] + sink;
  };
  std::vector<int64_t> bytes; // up to each group
  int64_t all = 0;
  for (const KeyGroup &group : plan.groups) {
    int64_t tiles = 0;
    for (int i = 0; i < group.pairs; ++i)
      tiles += tiles_of(group.row[i]);
    bytes.push_back(all);
    all += int64_t{group.pairs} * group.stride * slot_bytes +
           kGroupPairs * int64_t{rows.out.dims} * kColumnBytes +
           tiles * static_cast<int64_t>(sizeof(TileView) + sizeof(TileErrors));
  }
  // Launches of one size.
  const int64_t waves = std::max<int64_t>(up(all, sizes.bytes), 1), each = up(all, waves);
  int64_t number = -1;
  for (size_t at = 0; at < plan.groups.size(); ++at) {
    if (bytes[at] / each != number) plan.waves.push_back({static_cast<int64_t>(at)});
    number = bytes[at] / each;
    GroupWave &wave = plan.waves.back();
    ++wave.groups;
    KeyGroup &group = plan.groups[at];
    group.slots = wave.slots;
    wave.slots += int64_t{group.pairs} * group.stride;
    for (int i = 0; i < group.pairs; ++i) {
      group.tiles[i] = wave.tiles;
      wave.tiles += tiles_of(group.row[i]);
    }
  }
  for (GroupWave &wave : plan.waves) {
    cut(plan.groups, wave, sizes);
    wave.stripes = static_cast<int32_t>(
        std::clamp<int64_t>(up(arrays.most_tiles, kStripeTiles), 1, kMostStripes));
  }
  plan.first_state.push_back(0);
  for (size_t row = 0; row + 1 < arrays.first_tile.size(); ++row) {
    for (int64_t tile = arrays.first_tile[row]; tile < arrays.first_tile[row + 1]; ++tile)
      if (arrays.tiles[static_cast<size_t>(tile)].begins_state != 0)
        plan.states.push_back(static_cast<int32_t>(tile - arrays.first_tile[row]));
    plan.first_state.push_back(static_cast<int64_t>(plan.states.size()));
  }
  return plan;
}

GroupCall make_group_call(const AttentionRows &rows, const CallOutputs &outputs,
                          const KernelModel &model, const TierArrays &arrays, const GroupPlan &plan,
                          const Place &place) {
  GroupCall call{};
  call.tiers = make_tier_call(rows, outputs, model, arrays, place);
  call.groups = placed(plan.groups, place);
  call.states = placed(plan.states, place);
  call.first_state = placed(plan.first_state, place);
  return call;
}

} // namespace assay::oracle::device

namespace assay::oracle {

std::string groups_refuse(const AttentionRows &rows, const KernelModel &model) {
  if (std::string reason = tiers_refuse(rows, model); !reason.empty()) return reason;
  if (!model.order) return "no order of keys is declared";
  if (model.replay_scores) return "scores are replayed";
  if (rows.head_dim > device::kGroupDim || rows.out.dims > device::kGroupDim)
    return "head_dim above 128";
  if (model.arithmetic.p_format == ASSAY_FORMAT_FP32) return "weights are not rounded";
  return "";
}

} // namespace assay::oracle
