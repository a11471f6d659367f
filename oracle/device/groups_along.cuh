// SPDX-License-Identifier: Apache-2.0
// Internal: V of pairs that share keys along each pair's error, a block a unit, by fp64 MMAs: as
// scores are made, with V in K's place and errors in that of queries.
#pragma once

#include "oracle/device/groups_along.h"
#include "oracle/device/groups_scores.cuh"

namespace assay::oracle::device {

struct AlongMemory {
  SideMemory side;
  double products[2][kGroupPairs][kTileKeys];
  double reduced[kWarps][7];
};
/// kPartDim elements of the errors, times 2^500, as QueryPart has those of queries.
struct ErrorPart {
  double2 errors[2][8][kGroupPairs][4];
};

template <class Words>
struct AlongPlaces {
  static constexpr size_t kErrorsAt = (sizeof(AlongMemory) + 127) / 128 * 128;

  __host__ __device__ static size_t tiles_at(int parts) {
    return kErrorsAt + static_cast<size_t>(parts) * sizeof(ErrorPart);
  }
  __host__ __device__ static size_t bytes(int parts) {
    return tiles_at(parts) + 2 * kTileKeys * Words::kKeyPitch;
  }
};

__device__ inline void store_errors(const GroupCall &call, const KeyGroup &group, int parts,
                                    ErrorPart *to) {
  const int dims = call.base.dims, first = static_cast<int>(&group - call.groups) * kGroupPairs;
  constexpr int kWords = kPartDim / 2;
  for (int at = static_cast<int>(threadIdx.x); at < parts * kGroupPairs * kWords; at += kThreads) {
    const int part = at / (kGroupPairs * kWords), index = at / kWords % kGroupPairs;
    const int word = at % kWords;
    const bool aimed = index < group.pairs && call.pairs[first + index].aimed != 0;
    const auto number = [&](int dim) {
      return aimed && dim < dims ? call.columns[int64_t{first + index} * dims + dim].error * 0x1p500
                                 : 0.0;
    };
    const int dim = kPartDim * part + 2 * word;
    const WordPlace place(word);
    to[part].errors[place.half][place.word][index][place.lane] = {number(dim), number(dim + 1)};
  }
}

/// As score_tile.
template <class Words>
__device__ inline void tile_along(const Words &words, const unsigned char *tile,
                                  const ErrorPart &part, bool first_part, AlongMemory &memory) {
  const RowsOfWarp own;
  double sum[2][4] = {};
  own.each_word(words, tile, [&](int word, const double(&x)[4]) {
    double2 error{0.0, 0.0};
    if (own.g < kGroupPairs) error = part.errors[own.half][word][own.g][own.t];
    multiply8(sum[word % 2], x, error.x, error.y);
  });
  const double scale = ldexp(1.0, words.exponent - 500);
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int column = 2 * own.t + e % 2;
    if (column >= kGroupPairs) continue;
    double &to = memory.products[own.half][column][own.first + own.g + e / 2 * 8];
    const double x = (sum[0][e] + sum[1][e]) * scale;
    to = first_part ? x : to + x;
  }
}

/// What the block's threads found of a unit: two warps have a pair.
__device__ inline void store_along_parts(const GroupCall &call, int unit, const AlongSums &own,
                                         double (*reduced)[7]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const double all[7] = {
      over_warp(own.sums.errors, SumOf{}),    over_warp(own.sums.shares, SumOf{}),
      over_warp(own.sums.subnormal, SumOf{}), over_warp(own.sums.farthest, LargerOf{}),
      over_warp(own.sums.moved, LargerOf{}),  over_warp(own.rounding, SumOf{}),
      over_warp(own.alignment, SumOf{})};
#pragma unroll
  for (int i = 0; i < 7; ++i)
    if (lane == 0) reduced[warp][i] = all[i];
  __syncthreads();
  const int index = static_cast<int>(threadIdx.x);
  if (index < kGroupPairs) {
    AlongSums both;
    for (int of = 2 * index; of < 2 * index + 2; ++of) {
      const double(&p)[7] = reduced[of];
      both.join({{p[0], p[1], p[2], p[3], p[4]}, p[5], p[6]});
    }
    call.along[call.unit_pair(unit, index)] = both;
  }
  __syncthreads();
}

/// A pair of the unit's is judged along its error.
__device__ inline bool any_aimed(const GroupCall &call, const KeyGroup &group) {
  bool any = false;
  for (int index = 0; index < group.pairs; ++index)
    any = any || pair_of(call, group, index).aimed != 0;
  return any;
}

template <class Words>
__device__ inline void sum_along(const GroupCall &call, int unit, unsigned char *shared) {
  if (!any_aimed(call, group_of(call, unit))) return;
  auto &memory = *reinterpret_cast<AlongMemory *>(shared);
  auto *errors = reinterpret_cast<ErrorPart *>(shared + AlongPlaces<Words>::kErrorsAt);
  const int parts = SideLoop<Words>::parts_of(call.base.dims);
  SideLoop<Words> loop(call, unit, true, kAllParts, memory.side,
                       shared + AlongPlaces<Words>::tiles_at(parts));
  const auto nothing = [](int) {};
  store_errors(call, loop.group, parts, errors);
  loop.start(nothing);
  const PairKey own;
  const PairWork &pair = pair_of(call, loop.group, own.index);
  const bool present = own.index < loop.group.pairs && pair.aimed != 0;
  const SeenKeys seen = seen_by(call, loop.group, own.index);
  const AlongScale scale(call, pair);
  AlongSums sums;
  for (int number = 0; number < loop.count(); ++number) {
    const int part = number % parts;
    const bool sees = present && part + 1 == parts && seen(loop.position(number) + own.key);
    AlongKey key; // it comes while the tile does
    if (sees) key = along_key(call, loop.slot(number, own.index) + own.key);
    loop.turn_to(number, nothing);
    tile_along(loop.words, loop.tile(number), errors[part], part == 0, memory);
    if (part + 1 < parts) continue;
    __syncthreads();
    if (!sees) continue;
    const double value =
        memory.products[0][own.index][own.key] + memory.products[1][own.index][own.key];
    add_along(pair, scale, key, value, sums);
  }
  static_assert(kTileKeys == 2 * 32);
  store_along_parts(call, unit, sums, memory.reduced);
}

} // namespace assay::oracle::device
