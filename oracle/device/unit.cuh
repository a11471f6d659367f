// SPDX-License-Identifier: Apache-2.0
// Internal: the loop over a unit's tiles, and the logits of a tile, which both passes need.
#pragma once

#include "oracle/device/pair.cuh"
#include "oracle/device/tile.cuh"

namespace assay::oracle::device {

/** Shared memory of both passes, in front of two tiles. */
template <int kPairs>
struct UnitMemory {
  static constexpr int kPitch = kTileKeys + 4; ///< doubles: four rows meet every bank
  KeyPlaces places[2];
  Pair pairs[kPairs];
  RowNumbers rows[kPairs];
  OmegaRow omega[kPairs];
  double query_max[kPairs];
  double weights[kPairs][kPitch], subnormal[kPairs][kPitch];
  float centered[kTileKeys][kPairs];
  KeyMarks marks;
  int top[kPairs];
  double reduced[kWarps][kPairs][8];
};

/** A lane's share of scores: with four pairs a key, with eight two. */
template <int kPairs>
struct LaneKeys {
  static constexpr int kCount = kPairs == 4 ? 1 : 2;
  int pair, first, warp, lane;

  __device__ LaneKeys() {
    warp = static_cast<int>(threadIdx.x) / 32;
    lane = static_cast<int>(threadIdx.x) % 32;
    pair = (kPairs == 4 ? lane % 16 : lane) / 4;
    first = warp * 8 + lane % 4 * 2 + (kPairs == 4 ? lane / 16 : 0);
  }
  /// With four pairs, the upper half of a warp has none of its own and takes the second keys.
  __device__ void share(double (&x)[2]) const {
    if constexpr (kPairs == 4) {
      const double second = __shfl_sync(~0u, x[1], lane % 16);
      if (lane >= 16) x[0] = second;
    }
  }
};

/** q.k of a lane's keys, sum |q_i k_i| and sum |k_i|, neither too small. */
struct LaneScores {
  double value[2], size[2], key_size[2];
};

/** Sums or maxima over the lanes that hold keys of the same pair; all of those get it. */
template <int kPairs, class T, class Join>
__device__ inline T over_lanes(T x, Join join) {
  x = join(x, __shfl_xor_sync(~0u, x, 1));
  x = join(x, __shfl_xor_sync(~0u, x, 2));
  if constexpr (kPairs == 4) x = join(x, __shfl_xor_sync(~0u, x, 16));
  return x;
}
struct Add {
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct Most {
  __device__ double operator()(double a, double b) const { return fmax(a, b); }
};

template <int kPairs, int kBlocks>
struct UnitLoop {
  const Call &call;
  const Unit unit;
  const TileShape shape;
  const Decoder decoder;
  UnitMemory<kPairs> &memory;
  Queries<kPairs> *const queries;       ///< [kBlocks]
  Magnitudes<kPairs> *const magnitudes; ///< [kBlocks]
  unsigned char *const tiles;
  const LaneKeys<kPairs> lane;
  KeyRun run;        ///< of the thread's key in the tile that is placed next
  bool scans = true; ///< tiles are looked at; else nothing in them is special

  __device__ UnitLoop(const Call &c, unsigned char *shared)
      : call(c), unit(unit_of(c, blockIdx.x, kPairs)), shape(c.head_dim, c.dims),
        decoder(c.kv_dtype == ASSAY_BF16), memory(*reinterpret_cast<UnitMemory<kPairs> *>(shared)),
        queries(reinterpret_cast<Queries<kPairs> *>(shared + kQueriesAt)),
        magnitudes(reinterpret_cast<Magnitudes<kPairs> *>(shared + kMagnitudesAt)),
        tiles(shared + kTilesAt) {}

  static constexpr int kQueriesAt = (sizeof(UnitMemory<kPairs>) + 127) / 128 * 128;
  static constexpr int kMagnitudesAt =
      kQueriesAt + static_cast<int>(sizeof(Queries<kPairs>)) * kBlocks;
  static constexpr int kTilesAt =
      kMagnitudesAt + static_cast<int>(sizeof(Magnitudes<kPairs>)) * kBlocks;

  __device__ unsigned char *tile(int number) const { return tiles + number % 2 * shape.bytes(); }
  __device__ const unsigned char *values(int number) const {
    return tile(number) + kTileKeys * shape.k_pitch;
  }

  /// The pairs, and the queries in registers.
  __device__ void start() {
    const int mine = min(lane.warp, kPairs - 1);
    if (lane.warp < kPairs && mine < unit.pairs) start_pair(mine);
    __syncthreads();
    const Decoder query(call.q_dtype == ASSAY_BF16);
    // In two steps, neither of which leaves the range of doubles.
    const double scale = ldexp(1.0, query.exponent + kQueryScale - 1000);
    for (int at = static_cast<int>(threadIdx.x); at < kPairs * 32 * kBlocks; at += kThreads) {
      const int pair = at / (32 * kBlocks), dim = at % (32 * kBlocks);
      const bool present = pair < unit.pairs && dim < call.head_dim;
      const uint32_t top = present ? bits16(query_of(call, memory.pairs[pair]), dim) << 16 : 0;
      const double x = Decoder::with_sign(query.magnitude(top), top);
      queries[dim / 32][dim % 8][pair][dim / 8 % 4] = x * 0x1p1000 * scale;
      auto *halves = reinterpret_cast<unsigned short *>(&magnitudes[dim / 32][pair][dim / 8 % 4]);
      halves[dim % 8] = magnitude16(fabs(x) * query.scale(), memory.pairs[pair].magnitude_scale);
    }
    if (static_cast<int>(threadIdx.x) < kPairs) memory.top[threadIdx.x] = kNoTop;
    find_run(0);
    place(0);
    find_run(1);
    __syncthreads();
    load_tile<kBlocks>(call, shape, memory.places[0], tile(0));
    place(1);
    find_run(2);
  }

  /// |q| / `scale` in the type of K and V, rounded up. Exact where that is bf16, as q is then.
  __device__ unsigned short magnitude16(double size, double scale) const {
    if (call.kv_dtype == ASSAY_BF16)
      return static_cast<unsigned short>(__float_as_uint(static_cast<float>(size)) >> 16);
    return __half_as_ushort(__float2half_ru(__double2float_ru(size / scale)));
  }

  /// Of the warp.
  __device__ void start_pair(int index) {
    Pair pair = pair_of(call, unit.work, unit.kv_head, unit.first_pair + index);
    const unsigned char *q = query_of(call, pair);
    const Decoder query(call.q_dtype == ASSAY_BF16);
    double largest = 0.0, least = INFINITY;
    for (int i = lane.lane; i < call.head_dim; i += 32) {
      const uint32_t bits = bits16(q, i);
      const double size = query.magnitude(bits << 16) * query.scale();
      if ((bits & 0x7FFF) >= query.infinity) largest = INFINITY;
      largest = fmax(largest, size);
      if (size > 0.0) least = fmin(least, size);
    }
    for (int step = 16; step > 0; step /= 2) {
      largest = fmax(largest, __shfl_xor_sync(~0u, largest, step));
      least = fmin(least, __shfl_xor_sync(~0u, least, step));
    }
    if (lane.lane != 0) return;
    RowNumbers &row = memory.rows[index];
    pair.finite = largest < INFINITY && start_numbers(call, pair, largest, row);
    pair.subnormal_query = least < row.q_least;
    // Of products with fp16: the largest |q| lies between 2^14 and 2^15.
    pair.magnitude_scale = call.kv_dtype == ASSAY_BF16 || !(largest > 0.0) || !pair.finite
                               ? 1.0
                               : ldexp(1.0, ilogb(largest) - 14);
    memory.query_max[index] = largest;
    memory.pairs[index] = pair;
  }

  __device__ int tiles_of_unit() const {
    return (unit.end - unit.begin + kTileKeys - 1) / kTileKeys;
  }
  __device__ int position(int number) const {
    return unit.begin + number * kTileKeys + static_cast<int>(threadIdx.x);
  }
  /// A turn before place(): the load has that long.
  __device__ void find_run(int number) {
    if (static_cast<int>(threadIdx.x) < kTileKeys && position(number) < unit.end)
      run = run_of(call, unit.work, position(number));
  }
  __device__ void place(int number) {
    const int key = static_cast<int>(threadIdx.x);
    KeyPlaces &places = memory.places[number % 2];
    if (key >= kTileKeys) return;
    if (position(number) < unit.end)
      place_key(call, run, unit.kv_head, position(number), key, places);
    else
      places.k[key] = places.v[key] = nullptr;
  }

  /// Waits for a tile, marks what is special in it, starts the next and places the one behind it.
  __device__ void turn_to(int number) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    unsigned char *k = tile(number), *v = k + kTileKeys * shape.k_pitch;
    if (scans) {
      scan_side<kBlocks>(decoder, kSubnormalKey, shape.k_dims, shape.k_pitch, k, memory.marks.k);
      scan_side<kBlocks>(decoder, kSubnormalValue, shape.v_dims, shape.v_pitch, v, memory.marks.v);
    }
    __syncthreads();
    if (number + 1 >= tiles_of_unit()) return;
    load_tile<kBlocks>(call, shape, memory.places[(number + 1) % 2], tile(number + 1));
    place(number + 2);
    find_run(number + 3);
  }

  /// What subnormal operands add to the magnitude that addends are aligned by.
  __device__ double excess(const Pair &pair, const RowNumbers &row, const unsigned char *k) const {
    const double least_k = ldexp(1.0, row.facts.operand.min_exponent), least_q = row.q_least;
    const unsigned char *q = query_of(call, pair);
    const Decoder query(call.q_dtype == ASSAY_BF16);
    double sum = 0.0;
    for (int i = 0; i < call.head_dim; ++i) {
      const double a = query.magnitude(bits16(q, i) << 16) * query.scale();
      const double b = decoder.magnitude(bits16(k, i) << 16) * decoder.scale();
      if (a == 0.0 || b == 0.0 || (a >= least_q && b >= least_k)) continue;
      sum += fmax(a, least_q) * fmax(b, least_k);
    }
    return sum;
  }

  /// Scores of the lane's keys in a tile.
  __device__ LaneScores score(int number) const {
    const unsigned char *k =
        tile(number) + (lane.warp * 8 + lane.lane / 4) * shape.k_pitch + 16 * (lane.lane % 4);
    LaneScores out;
    float size[4];
    if (call.kv_dtype == ASSAY_BF16)
      scores<kPairs, kBlocks, true>(decoder, queries, magnitudes, k, shape.k_dims, out.value, size);
    else
      scores<kPairs, kBlocks, false>(decoder, queries, magnitudes, k, shape.k_dims, out.value,
                                     size);
    // Sums of at most 256 products, each addition off by 2^-22 of the result at most, downwards by
    // the smallest normal number: what the MMA loses is given back.
    const auto whole = [](float sum) {
      return static_cast<double>(sum) * (1.0 + 0x1p-14) + 0x1p-118;
    };
    const double scale =
        lane.lane / 4 < unit.pairs ? memory.pairs[lane.lane / 4].magnitude_scale : 1.0;
    for (int e = 0; e < 2; ++e) {
      out.size[e] = whole(size[e]) * scale;
      out.key_size[e] = whole(size[2 + e]);
    }
    lane.share(out.value);
    lane.share(out.size);
    lane.share(out.key_size);
    return out;
  }

  /// False: the lane's pair does not see its key `e`.
  __device__ bool sees(int number, int e) const {
    if (lane.pair >= unit.pairs) return false;
    const Pair &pair = memory.pairs[lane.pair];
    const int position = unit.begin + number * kTileKeys + lane.first + e;
    return position >= pair.begin && position < min(pair.end, unit.end);
  }

  /// The logit of the lane's key `e`, which its pair sees. False: nothing is claimed.
  __device__ bool logit(int number, int e, const LaneScores &score, Logit &out) const {
    const Pair &pair = memory.pairs[lane.pair];
    const RowNumbers &row = memory.rows[lane.pair];
    const int key = lane.first + e, position = unit.begin + number * kTileKeys + key;
    const uint32_t flags = memory.marks.k[key] | memory.marks.v[key];
    if ((flags & kNotFinite) != 0 || !pair.finite) return false;
    KeyFacts facts;
    facts.distance = static_cast<double>(call.shard.position(position) -
                                         call.shard.position(pair.end - 1) + pair.behind);
    facts.head_dim = call.head_dim;
    facts.key_magnitude = score.key_size[e];
    if (pair.subnormal_query || (flags & kSubnormalKey) != 0)
      facts.excess = excess(pair, row, tile(number) + key * shape.k_pitch);
    return key_logit(row, {score.value[e], score.size[e]}, facts, out) &&
           fabs(out.x) < kLargestLogit;
  }

  static constexpr int kNoTop = -(1 << 30);
  static constexpr double kLargestLogit = 1 << 29; ///< far above what any claim is made of
};

} // namespace assay::oracle::device
