// SPDX-License-Identifier: Apache-2.0
// Internal: the tiles of K or V of a unit, and the coefficients that come with them.
#pragma once

#include "oracle/device/groups_keys.h"
#include "oracle/device/words.cuh"

namespace assay::oracle::device {

/// Where the rows of K or V of the tiles lie, and what is special in them.
struct SideMemory {
  ElementPlace places[4][kTileKeys];
  uint32_t marks[2][kTileKeys]; ///< KeyFlag
};

__device__ inline const KeyGroup &group_of(const GroupCall &call, int unit) {
  int low = 0, high = call.num_groups - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (call.groups[middle].first_unit <= unit)
      low = middle;
    else
      high = middle - 1;
  }
  return call.groups[low];
}

/// The run of a key of the group's list.
__device__ inline KeyRun run_of(const Call &call, const KeyGroup &group, int position) {
  const int64_t low = call.first_run[group.list];
  if (group.run_keys > 0) return call.runs[low + position / group.run_keys];
  return run_among(call.runs, low, call.first_run[group.list + 1] - 1, position);
}

inline constexpr int kAllParts = -1;

/**
 * The tiles of a unit, of K or of V: one is worked on while the next one comes. It has one part of
 * their elements, for sums over keys, or all parts of a tile, for sums over elements: these follow
 * each other, and `number` counts them.
 */
template <class Words>
struct SideLoop {
  const GroupCall &call;
  const int unit;
  const KeyGroup &group;
  const bool values;
  const int part, parts; ///< which, or kAllParts; how many
  const Words words;
  SideMemory &memory;
  unsigned char *const tiles;
  int begin, end;
  KeyRun run{}; ///< of the thread's key in the tile that is placed next

  __device__ SideLoop(const GroupCall &c, int unit_number, bool of_values, int one_part,
                      SideMemory &places, unsigned char *to)
      : call(c), unit(unit_number), group(group_of(c, unit_number)), values(of_values),
        part(one_part), parts(one_part == kAllParts ? parts_of(dims()) : 1), words(c.base),
        memory(places), tiles(to) {
    begin = group.begin + (unit - group.first_unit) * call.unit_keys;
    end = min(begin + call.unit_keys, group.begin + group.stride);
  }
  __host__ __device__ static int parts_of(int dims) { return (dims + kPartDim - 1) / kPartDim; }

  __device__ int dims() const { return values ? call.base.dims : call.base.head_dim; }
  __device__ int pitch() const { return part == kAllParts ? Words::kKeyPitch : Words::kValuePitch; }
  __device__ int count() const { return (end - begin) / kTileKeys * parts; }
  __device__ int position(int number) const { return begin + number / parts * kTileKeys; }
  __device__ unsigned char *tile(int number) const {
    return tiles + number % 2 * kTileKeys * pitch();
  }
  /// The slot of a pair's key at the head of a tile.
  __device__ int64_t slot(int number, int pair) const {
    return group.slots + int64_t{pair} * group.stride + (position(number) - group.begin);
  }

  /// A turn before place(): the load has that long.
  __device__ void find_run(int number) {
    const int key = static_cast<int>(threadIdx.x), at = position(number) + key;
    if (key < kTileKeys && number < count() && at < group.end) run = run_of(call.base, group, at);
  }
  __device__ void place(int number) const {
    const int key = static_cast<int>(threadIdx.x), at = position(number) + key;
    if (key >= kTileKeys) return;
    ElementPlace place;
    if (number < count() && at < group.end)
      place = place_of(call.base, run, group.kv_head, at, values);
    memory.places[number % 4][key] = place;
  }
  __device__ void load(int number) const {
    const Call &base = call.base;
    words.load(base, memory.places[number % 4][own_key()],
               kPartDim * (part == kAllParts ? number % parts : part), dims(),
               tile(number) + own_key() * pitch());
  }
  __device__ void scan(int number) const {
    uint32_t flags = words.scan(tile(number) + own_key() * pitch());
#pragma unroll
    for (int step = 1; step < 4; step *= 2)
      flags |= __shfl_xor_sync(~0u, flags, step);
    if (own_part() == 0) memory.marks[number % 2][own_key()] = flags;
  }

  /// `also(number)` starts what else comes with a tile.
  template <class Also>
  __device__ void start(Also also) {
    find_run(0);
    place(0);
    find_run(1);
    __syncthreads();
    load(0);
    also(0);
    commit_copies();
    place(1);
    find_run(2);
  }
  template <class Also>
  __device__ void turn_to(int number, Also also) {
    await_copies();
    scan(number);
    __syncthreads();
    if (number + 1 >= count()) return;
    load(number + 1);
    also(number + 1);
    commit_copies();
    place(number + 2);
    find_run(number + 3);
  }
};

/// What a pair sees, as positions in its list.
struct SeenKeys {
  int begin, end;

  __device__ bool operator()(int position) const { return position >= begin && position < end; }
};
__device__ inline SeenKeys seen_by(const GroupCall &call, const KeyGroup &group, int pair) {
  if (pair >= group.pairs) return {0, 0};
  const int row = group.row[pair];
  return {call.base.begin[row], call.base.end[row]};
}

inline constexpr int kRowPitch = 72; ///< doubles: 16-byte reads of two rows meet every bank

/// Copies coefficients of a tile: rows of kGroupPairs of each of `Kinds`. A warp has a pair and
/// every other kind.
template <class Kinds, class Words>
__device__ inline void load_coefficients(const SideLoop<Words> &loop, int number,
                                         double (*to)[kRowPitch]) {
  static_assert(kThreads == 2 * kGroupPairs * 32 && kTileKeys == 2 * 32);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int pair = warp % kGroupPairs;
  const bool present = pair < loop.group.pairs;
  const double *from = loop.call.keys + (present ? loop.slot(number, pair) + 2 * lane : 0);
#pragma unroll
  for (int i = 0; i < Kinds::kCount; ++i)
    if (i % 2 == warp / kGroupPairs)
      copy_async(&to[i * kGroupPairs + pair][2 * lane], from + Kinds::kind(i) * loop.call.slots,
                 present);
}

} // namespace assay::oracle::device
