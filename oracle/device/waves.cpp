// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/waves.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace assay::oracle::device {

namespace {

// Scratch of a launch.
constexpr size_t kMaxUnitBytes = size_t{46} << 20, kMaxPairBytes = size_t{16} << 20;
constexpr int kWantedUnits = 2112; ///< eight for each of two blocks on 132 multiprocessors
constexpr int kLeastTiles = 8;     ///< of a unit, where the keys suffice
constexpr int kListBlocks = 64;    ///< blocks of pairs of a list and its kv heads in a launch

/// Rows by list, not too many at once, and the keys that they see.
std::vector<ListWork> works_of(const AttentionRows &rows, int most_rows,
                               std::vector<int32_t> &order) {
  order.resize(rows.list.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return rows.list[static_cast<size_t>(a)] < rows.list[static_cast<size_t>(b)];
  });
  std::vector<ListWork> works;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto row = static_cast<size_t>(order[i]);
    if (works.empty() || works.back().list != rows.list[row] || works.back().rows == most_rows)
      works.push_back({0, static_cast<int32_t>(i), 0, rows.list[row], 0, 0, 0, 0, 0,
                       keys_of_runs(rows, rows.list[row])});
    ListWork &work = works.back();
    ++work.rows;
    if (rows.begin[row] == rows.end[row]) continue;
    work.begin = work.begin == work.end ? rows.begin[row] : std::min(work.begin, rows.begin[row]);
    work.end = std::max(work.end, rows.end[row]);
  }
  return works;
}

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Into chunks of keys: enough units for the device, and not more of a list than `most`.
void cut(std::vector<ListWork> &works, const Sizes &sizes, int64_t most) {
  int64_t tiles = 0;
  for (ListWork &work : works) {
    work.blocks = static_cast<int32_t>(up(int64_t{work.rows} * sizes.group, sizes.pairs));
    tiles += up(work.end - work.begin, kTileKeys) * work.blocks * sizes.kv_heads;
  }
  const int64_t chunk = std::max<int64_t>(up(tiles, kWantedUnits), kLeastTiles) * kTileKeys;
  for (ListWork &work : works) {
    const int64_t keys = work.end - work.begin;
    const int64_t fit = std::max<int64_t>(most / (int64_t{work.blocks} * sizes.kv_heads), 1);
    work.chunks = static_cast<int32_t>(std::min(up(keys, chunk), fit));
    // As even as whole tiles allow.
    work.chunk = work.chunks == 0
                     ? kTileKeys
                     : static_cast<int32_t>(up(up(keys, work.chunks), kTileKeys) * kTileKeys);
    work.chunks = static_cast<int32_t>(up(keys, work.chunk));
  }
}

} // namespace

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

std::vector<Wave> waves_of(const AttentionRows &rows, const Sizes &sizes) {
  std::vector<int32_t> order;
  const auto most = static_cast<int64_t>(kMaxUnitBytes / sizes.unit_bytes());
  const int most_rows_of_list =
      std::max(kListBlocks * sizes.pairs / (sizes.group * sizes.kv_heads), 1);
  std::vector<ListWork> works = works_of(rows, most_rows_of_list, order);
  cut(works, sizes, most);
  const size_t row_bytes =
      static_cast<size_t>(sizes.group) * static_cast<size_t>(sizes.kv_heads) *
      (sizeof(PairState) + sizeof(PairEnd) + static_cast<size_t>(sizes.dims) * sizeof(double));
  const size_t most_rows = std::max<size_t>(kMaxPairBytes / row_bytes, 1);
  std::vector<Wave> waves;
  for (ListWork work : works) {
    const int64_t units = int64_t{work.chunks} * work.blocks * sizes.kv_heads;
    if (units > most)
      throw std::invalid_argument("bulk judge: more kv heads than its scratch holds");
    if (waves.empty() || waves.back().units + units > most ||
        waves.back().rows.size() + static_cast<size_t>(work.rows) > most_rows)
      waves.emplace_back();
    Wave &wave = waves.back();
    const auto first = order.begin() + work.first_row;
    work.first_row = static_cast<int32_t>(wave.rows.size());
    work.first_unit = wave.units;
    wave.units += units;
    wave.rows.insert(wave.rows.end(), first, first + work.rows);
    wave.lists.push_back(work);
  }
  return waves;
}

} // namespace assay::oracle::device
