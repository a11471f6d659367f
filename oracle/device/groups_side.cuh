// SPDX-License-Identifier: Apache-2.0
// Internal: the tiles of K or V of a unit, and the coefficients that come with them.
#pragma once

#include "oracle/device/groups_keys.h"
#include "oracle/device/plain_tile.cuh"

namespace assay::oracle::device {

inline constexpr int kValuePitch = 272; ///< bytes between rows of V: eight rows meet every bank

/// Elements of a word as doubles, Decoder::scale() times too small.
struct Words {
  int shift, mask;

  __device__ explicit Words(bool bf16)
      : shift(bf16 ? 3 : 6), mask(static_cast<int>(bf16 ? 0x8FFFE000u : 0x81FFFC00u)) {}
  __device__ double lower(uint32_t word) const {
    return __hiloint2double((static_cast<int>(word << 16) >> shift) & mask, 0);
  }
  __device__ double upper(uint32_t word) const {
    return __hiloint2double((static_cast<int>(word) >> shift) & mask, 0);
  }
  /// As multiply8 takes rows lane / 4 and 8 more.
  __device__ void decode(uint32_t first, uint32_t second, double (&out)[4]) const {
    out[0] = lower(first);
    out[1] = lower(second);
    out[2] = upper(first);
    out[3] = upper(second);
  }
};

inline constexpr uint32_t kSubnormalMark = kSubnormalKey; ///< on either side

/// Where the rows of K or V of the tiles lie, and what is special in them.
struct SideMemory {
  const unsigned char *rows[4][kTileKeys]; ///< null: there is none
  uint32_t marks[2][kTileKeys];            ///< KeyFlag
};

/** The tiles of a unit, of K or of V: one is worked on while the next one comes. */
struct SideLoop {
  const GroupCall &call;
  const KeyGroup &group;
  const bool values;
  const int pitch;
  const Decoder decoder;
  SideMemory &memory;
  unsigned char *const tiles;
  int unit, begin, end;
  ListWork work{};
  KeyRun run{}; ///< of the thread's key in the tile that is placed next

  __device__ SideLoop(const GroupCall &c, bool of_values, int row_pitch, SideMemory &places,
                      unsigned char *to)
      : call(c), group(group_of(c)), values(of_values), pitch(row_pitch),
        decoder(c.tiers.base.kv_dtype == ASSAY_BF16), memory(places), tiles(to) {
    unit = static_cast<int>(blockIdx.x);
    begin = group.begin + (unit - group.first_unit) * call.unit_keys;
    end = min(begin + call.unit_keys, group.begin + group.stride);
    work.list = group.list;
    work.run_keys = group.run_keys;
  }
  __device__ static const KeyGroup &group_of(const GroupCall &call) {
    int low = 0, high = call.num_groups - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (call.groups[middle].first_unit <= static_cast<int>(blockIdx.x))
        low = middle;
      else
        high = middle - 1;
    }
    return call.groups[low];
  }

  __device__ int count() const { return (end - begin) / kTileKeys; }
  __device__ int position(int number) const { return begin + number * kTileKeys; }
  __device__ unsigned char *tile(int number) const {
    return tiles + number % 2 * kTileKeys * pitch;
  }
  /// The slot of a pair's key at the head of a tile.
  __device__ int64_t slot(int number, int pair) const {
    return group.slots + int64_t{pair} * group.stride + (position(number) - group.begin);
  }

  /// A turn before place(): the load has that long.
  __device__ void find_run(int number) {
    const int key = static_cast<int>(threadIdx.x), at = position(number) + key;
    if (key < kTileKeys && number < count() && at < group.end)
      run = run_of(call.tiers.base, work, at);
  }
  __device__ void place(int number) const {
    const int key = static_cast<int>(threadIdx.x), at = position(number) + key;
    if (key >= kTileKeys) return;
    const unsigned char *row = nullptr;
    if (number < count() && at < group.end) {
      const Call &base = call.tiers.base;
      const DevicePool &pool = base.pools[run.pool];
      const int64_t slot = at - run.position, bytes = element_bytes(base.kv_dtype);
      const int64_t from =
          values ? run.v_at + slot * pool.v_stride_token + group.kv_head * pool.v_stride_head
                 : run.k_at + slot * pool.k_stride_token + group.kv_head * pool.k_stride_head;
      row = (values ? pool.v : pool.k) + from * bytes;
    }
    memory.rows[number % 4][key] = row;
  }
  __device__ void load(int number) const {
    const Call &base = call.tiers.base;
    load_side<kGroupDim / 32>(base, memory.rows[number % 4][own_key()], base.pools[0].k,
                              values ? base.dims : base.head_dim, kGroupDim, pitch, tile(number));
  }
  __device__ static void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

  /// `also(number)` starts what else comes with a tile.
  template <class Also>
  __device__ void start(Also also) {
    find_run(0);
    place(0);
    find_run(1);
    __syncthreads();
    load(0);
    also(0);
    commit();
    place(1);
    find_run(2);
  }
  template <class Also>
  __device__ void turn_to(int number, Also also) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    scan_side<kGroupDim / 32>(decoder, kSubnormalMark, kGroupDim, pitch, tile(number),
                              memory.marks[number % 2]);
    __syncthreads();
    if (number + 1 >= count()) return;
    load(number + 1);
    also(number + 1);
    commit();
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
  return {call.tiers.base.begin[row], call.tiers.base.end[row]};
}

inline constexpr int kRowPitch = 72; ///< doubles: 16-byte reads of two rows meet every bank

/// Copies coefficients of a tile: `kinds` rows of kGroupPairs, from kind `first` on, then kOfTiny.
/// A warp has a pair and every other kind.
__device__ inline void load_coefficients(const SideLoop &loop, int number, int first, int kinds,
                                         bool tiny, double (*to)[kRowPitch]) {
  static_assert(kThreads == 2 * kGroupPairs * 32 && kTileKeys == 2 * 32);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int pair = warp % kGroupPairs;
  const bool present = pair < loop.group.pairs;
  const double *from = loop.call.keys + (present ? loop.slot(number, pair) + 2 * lane : 0);
#pragma unroll 1
  for (int kind = warp / kGroupPairs; kind < kinds + (tiny ? 1 : 0); kind += 2) {
    const int of = kind < kinds ? first + kind : static_cast<int>(kOfTiny);
    copy_async(&to[kind * kGroupPairs + pair][2 * lane], from + of * loop.call.slots, present);
  }
}

/// The same over the `kLanes` lanes that follow each other in a warp.
template <int kLanes, class Join>
__device__ inline double over_some_lanes(double x, Join join) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2)
    x = join(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

} // namespace assay::oracle::device
