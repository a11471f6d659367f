// SPDX-License-Identifier: Apache-2.0
// Internal: the loop over a unit's tiles of 64 keys of 128 elements, and the scores of a tile.
#pragma once

#include "oracle/device/plain_tile.cuh"

namespace assay::oracle::device {

/// Parts of 16 bits that coefficients are sums of, first the larger part.
enum CoefficientPart { kMagnitudeParts = 0, kErrorParts = 2, kWeightParts = 4, kParts = 6 };

/** What a pair's logits and errors are made of: x = scale score, s (error and radius together) =
    by_size sum|q k| + by_x |x| + by_key sum|k| + constant, ln(1 + omega) = g s + h (top - x) and
    what the row's keys share. */
struct PlainPair {
  double scale, by_size, by_x, by_key, constant, g, h;
  int begin, end;
};

template <int kPairs>
struct PlainMemory {
  static constexpr int kPitch = kTileKeys + 4; ///< doubles
  static constexpr int kPartPitch = 72;        ///< of 16 bits
  KeyPlaces places[2];
  PlainPair pairs[kPairs];
  int top[kPairs], found[kPairs];
  int unset; ///< 1: some pair has no top
  double scores[2][kPairs][kPitch];
  float sizes[2][kPairs][kTileKeys], key_sizes[2][kTileKeys];
  __align__(16) double weights[kPairs][kPitch]; ///< read in twos
  __align__(16) unsigned short parts[kParts][kPairs][kPartPitch];
  double2 queries[2][8][kPairs][4];  ///< [half][word of a lane][pair][lane % 4]
  uint2 magnitudes[2][4][kPairs][4]; ///< likewise, two words
  double reduced[kWarps][4];
  float maxima[kWarps][2];
  uint32_t words[kWarps][2];
};

template <int kPairs>
struct PlainLoop {
  static constexpr int kKeysEach = kPairs == 4 ? 1 : 2;
  const Call &call;
  const Unit unit;
  PlainMemory<kPairs> &memory;
  PlainTiles tiles;
  const int warp, lane, pair; ///< of the thread's logits
  KeyRun run;

  __device__ PlainLoop(const Call &c, unsigned char *shared)
      : call(c), unit(unit_of(c, blockIdx.x, kPairs)),
        memory(*reinterpret_cast<PlainMemory<kPairs> *>(shared)),
        tiles(c.kv_dtype != ASSAY_BF16, shared + kTilesAt),
        warp(static_cast<int>(threadIdx.x) / 32), lane(static_cast<int>(threadIdx.x) % 32),
        pair(kPairs == 4 ? warp / 2 : warp) {}

  static constexpr int kTilesAt = (sizeof(PlainMemory<kPairs>) + 127) / 128 * 128;

  __device__ int tiles_of_unit() const {
    return (unit.end - unit.begin + kTileKeys - 1) / kTileKeys;
  }
  __device__ int position(int number) const {
    return unit.begin + number * kTileKeys + static_cast<int>(threadIdx.x);
  }
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

  __device__ void start() {
    if (static_cast<int>(threadIdx.x) < kPairs)
      memory.top[threadIdx.x] = memory.found[threadIdx.x] = kNoTop;
    if (threadIdx.x == 0) memory.unset = 1;
    for (int index = warp; index < kPairs; index += kWarps)
      start_pair(index);
    find_run(0);
    place(0);
    find_run(1);
    __syncthreads();
    tiles.load(call, memory.places[0], 0);
    place(1);
    find_run(2);
    __syncthreads();
  }

  /// Of the warp: the pair's constants, or that it is special; its query as the lanes take it.
  __device__ void start_pair(int index) {
    const bool present = index < unit.pairs;
    const Pair of = pair_of(call, unit.work, unit.kv_head, unit.first_pair + (present ? index : 0));
    const unsigned char *q = query_of(call, of);
    const Decoder decoder(true);
    double largest = 0.0, least = INFINITY;
    for (int i = lane; i < kPlainDim; i += 32) {
      const uint32_t bits = bits16(q, i);
      const double size = decoder.magnitude(bits << 16) * decoder.scale();
      if ((bits & 0x7FFF) >= decoder.infinity) largest = INFINITY;
      largest = fmax(largest, size);
      if (size > 0.0) least = fmin(least, size);
    }
    for (int step = 16; step > 0; step /= 2) {
      largest = fmax(largest, __shfl_xor_sync(~0u, largest, step));
      least = fmin(least, __shfl_xor_sync(~0u, least, step));
    }
    store_query(index, present ? q : nullptr);
    if (lane != 0) return;
    PlainPair out{};
    bool plain = false;
    if (present) {
      RowNumbers row;
      plain = largest < INFINITY && start_numbers(call, of, largest, row) &&
              !(least < row.q_least) && plain_pair(row, largest, out);
      out.begin = of.begin;
      out.end = min(of.end, unit.end);
    }
    call.plain_sums[unit.id * kPairs + index].query_max = largest;
    call.plain_sums[unit.id * kPairs + index].plain = plain;
    memory.pairs[index] = out;
  }

  /// False: a pair that the pass does not take.
  __device__ bool plain_pair(const RowNumbers &row, double largest, PlainPair &out) const {
    const double dot = row.model.dot, least = ldexp(1.0, row.facts.operand.min_exponent);
    // Values of e4m3 are normal in fp16. Otherwise: no more than this.
    const double excess = call.kv_dtype == ASSAY_BF16 ? kPlainDim * largest * least : 0.0;
    const double query = row.q_error * kSlack * kSlack;
    out.scale = row.scale * Decoder(true).score_scale();
    out.by_x = (0.5 * dot * kSlack + 4 * 0x1p-53) * kSlack;
    out.by_size = row.scale * (0.5 * dot * kSlack + kPlainDim * 0x1p-53) * kSlack;
    out.by_key = row.scale * (1.0 + dot) * query;
    out.constant = row.scale * (dot * excess + row.model.dot_floor) * kSlack +
                   (out.by_size + out.by_key) * 0x1p-118;
    // What the MMA loses of its sums.
    out.by_size *= 1.0 + 0x1p-14;
    out.by_key *= 1.0 + 0x1p-14;
    const PlainOmega omega(row);
    out.g = kLn2 * kSlack * omega.by_score;
    out.h = kLn2 * kSlack * omega.by_distance;
    return row.scale > 0x1p-60 && row.scale < 0x1p60 && out.constant < 0x1p-60;
  }

  __device__ void store_query(int index, const unsigned char *q) {
    const Decoder decoder(true);
    const double scale = ldexp(1.0, decoder.exponent + kQueryScale - 1000);
    for (int at = lane; at < kPlainDim / 2; at += 32) { // words
      const uint32_t word = q != nullptr ? bits16(q, 2 * at) | bits16(q, 2 * at + 1) << 16 : 0;
      const int half = at / 32, block = at % 32 / 16, part = at % 16 / 4, j = at % 4;
      const auto number = [&](uint32_t top) {
        return Decoder::with_sign(decoder.magnitude(top), top) * 0x1p1000 * scale;
      };
      memory.queries[half][4 * block + j][index][part] = {number(word << 16), number(word)};
      uint2 &sizes = memory.magnitudes[half][2 * block + j / 2][index][part];
      (j % 2 ? sizes.y : sizes.x) = word & 0x7FFF7FFFu;
    }
  }

  /// Scores of 16 keys over half of the dimensions.
  __device__ void score(int number) {
    const int half = warp / 4, first = warp % 4 * 16, g = lane / 4, t = lane % 4;
    const unsigned char *k =
        tiles.keys(number) + (first + g) * kPlainKeyPitch + 128 * half + 16 * t;
    double sum[2][4] = {};
    float size[4] = {}, ones[4] = {};
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      const uint4 a = *reinterpret_cast<const uint4 *>(k + 64 * block);
      const uint4 b = *reinterpret_cast<const uint4 *>(k + 64 * block + 8 * kPlainKeyPitch);
      const uint32_t upper[4] = {a.x, a.y, a.z, a.w}, lower[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const double2 q = memory.queries[half][4 * block + j][g % kPairs][t];
        multiply8(sum[j % 2], upper[j], lower[j], q.x, q.y);
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint2 q = memory.magnitudes[half][2 * block + j][g % kPairs][t];
        const uint32_t m[4] = {upper[2 * j] & 0x7FFF7FFFu, lower[2 * j] & 0x7FFF7FFFu,
                               upper[2 * j + 1] & 0x7FFF7FFFu, lower[2 * j + 1] & 0x7FFF7FFFu};
        constexpr uint32_t kOnes = 0x3F803F80u;
        if constexpr (kPairs == 4) {
          multiply_parts(size, m, g < 4 ? q.x : kOnes, g < 4 ? q.y : kOnes);
        } else {
          multiply_parts(size, m, q.x, q.y);
          multiply_parts(ones, m, kOnes, kOnes);
        }
      }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = 2 * t + e % 2, key = first + g + e / 2 * 8;
      if (column < kPairs) {
        memory.scores[half][column][key] = sum[0][e] + sum[1][e];
        memory.sizes[half][column][key] = size[e];
      }
      if (kPairs == 4 ? column == 4 : column == 0)
        memory.key_sizes[half][key] = kPairs == 4 ? size[e] : ones[e];
    }
  }

  __device__ bool sees(int number, int key) const {
    const int at = unit.begin + number * kTileKeys + key;
    return at >= memory.pairs[pair].begin && at < memory.pairs[pair].end;
  }

  static constexpr int kNoTop = -(1 << 30);
};

} // namespace assay::oracle::device
