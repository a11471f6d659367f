// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/groups_call.h"

#include <algorithm>
#include <numeric>

namespace assay::oracle::device {
namespace {

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// How many keys every run of a list but its last has; 0: they differ.
int32_t keys_of_runs(const AttentionRows &rows, int list) {
  const auto first = rows.first_run[static_cast<size_t>(list)];
  const auto last = rows.first_run[static_cast<size_t>(list) + 1];
  if (first == last) return 0;
  const int32_t keys = rows.runs[static_cast<size_t>(first)].count;
  for (int64_t i = first; i < last; ++i) {
    const KeyRun &run = rows.runs[static_cast<size_t>(i)];
    const bool fits = i + 1 < last ? run.count == keys : run.count <= keys;
    if (!fits || run.position != (i - first) * keys) return 0;
  }
  return keys;
}

/// The heads of each kv head.
std::vector<std::vector<int>> sharing_heads(const AttentionRows &rows) {
  std::vector<std::vector<int>> sharing(static_cast<size_t>(kv_heads_of(rows)));
  for (size_t head = 0; head < rows.heads.size(); ++head)
    sharing[static_cast<size_t>(rows.heads[head].kv_head)].push_back(static_cast<int>(head));
  return sharing;
}

void add_pair(const AttentionRows &rows, int row, int head, KeyGroup &group) {
  const auto at = static_cast<size_t>(row);
  group.row[group.pairs] = row;
  group.head[group.pairs] = head;
  ++group.pairs;
  if (rows.begin[at] == rows.end[at]) return;
  const bool none = group.begin == group.end;
  group.begin = none ? rows.begin[at] : std::min(group.begin, rows.begin[at]);
  group.end = std::max(group.end, rows.end[at]);
}

/// Groups of all lists, rows of a list together; no launch is said yet.
std::vector<KeyGroup> groups_of(const AttentionRows &rows, int most_pairs) {
  const std::vector<std::vector<int>> sharing = sharing_heads(rows);
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
    KeyGroup empty{};
    empty.list = list;
    empty.run_keys = keys_of_runs(rows, list);
    for (size_t kv_head = 0; kv_head < sharing.size(); ++kv_head) {
      const std::vector<int> &heads = sharing[kv_head];
      empty.kv_head = static_cast<int>(kv_head);
      const size_t pairs = (last - first) * heads.size();
      for (size_t i = 0; i < pairs; ++i) {
        if (i % static_cast<size_t>(most_pairs) == 0) groups.push_back(empty);
        add_pair(rows, order[first + i / heads.size()], heads[i % heads.size()], groups.back());
      }
    }
  }
  for (KeyGroup &group : groups)
    group.stride = static_cast<int32_t>(up(group.end - group.begin, kTileKeys) * kTileKeys);
  return groups;
}

/// The first tile of each state of every row.
void find_states(const CallArrays &arrays, GroupPlan &plan) {
  plan.first_state.push_back(0);
  for (size_t row = 0; row + 1 < arrays.first_tile.size(); ++row) {
    for (int64_t tile = arrays.first_tile[row]; tile < arrays.first_tile[row + 1]; ++tile)
      if (arrays.tiles[static_cast<size_t>(tile)].begins_state != 0)
        plan.states.push_back(static_cast<int32_t>(tile - arrays.first_tile[row]));
    plan.first_state.push_back(static_cast<int64_t>(plan.states.size()));
  }
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

int64_t keys_of_pairs(const AttentionRows &rows) {
  int64_t tiles = 0;
  for (int row = 0; row < rows.out.rows(); ++row)
    tiles += up(rows.keys(row), kTileKeys);
  return tiles * kTileKeys * rows.out.heads;
}

GroupPlan plan_groups(const AttentionRows &rows, const CallArrays &arrays,
                      const GroupSizes &sizes) {
  constexpr int64_t kColumnBytes =
      kGroupSums * sizeof(double) + 2 * sizeof(double) + 2 * sizeof(float) + sizeof(PairColumn);
  constexpr int64_t kMostStripes = 64;
  const int sink = rows.sinks ? 1 : 0;
  const bool tiny = may_be_subnormal(arrays.model);
  const int kinds = !arrays.replays ? kLogitKinds : tiny ? kGroupKinds : static_cast<int>(kOfTiny);
  const int64_t slot_bytes = kinds * static_cast<int64_t>(sizeof(double));
  GroupPlan plan;
  plan.groups = groups_of(rows, sizes.pairs);
  const auto tiles_of = [&](int row) -> int64_t {
    const auto at = static_cast<size_t>(row);
    if (!arrays.replays) return up(rows.keys(row), kTileKeys) + sink;
    return arrays.first_tile[at + 1] - arrays.first_tile[at] + sink;
  };
  int64_t most_tiles = 0, all = 0;
  std::vector<int64_t> bytes; // up to each group
  for (const KeyGroup &group : plan.groups) {
    int64_t tiles = 0;
    for (int i = 0; i < group.pairs; ++i) {
      tiles += tiles_of(group.row[i]);
      most_tiles = std::max(most_tiles, tiles_of(group.row[i]));
    }
    if (!arrays.replays) tiles = 0;
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
      if (arrays.replays) wave.tiles += tiles_of(group.row[i]);
    }
  }
  for (GroupWave &wave : plan.waves) {
    cut(plan.groups, wave, sizes);
    wave.stripes = static_cast<int32_t>(
        std::clamp<int64_t>(up(most_tiles, sizes.stripe_tiles), 1, kMostStripes));
  }
  if (arrays.replays) find_states(arrays, plan);
  return plan;
}

GroupCall make_group_call(const AttentionRows &rows, const CallOutputs &outputs,
                          const KernelModel &model, const CallArrays &arrays, const GroupPlan &plan,
                          const Place &place) {
  GroupCall call{};
  call.base = make_call(rows, outputs, model, arrays, place);
  call.groups = placed(plan.groups, place);
  call.states = placed(plan.states, place);
  call.first_state = placed(plan.first_state, place);
  return call;
}

} // namespace assay::oracle::device
