// SPDX-License-Identifier: Apache-2.0
// Internal: scores of pairs that share keys, a block a unit, by fp64 MMAs: q k and |q| |k| of four
// pairs, and the sum of |k|.
#pragma once

#include "oracle/device/groups_side.cuh"

namespace assay::oracle::device {

struct ScoreMemory {
  SideMemory side;
  double2 queries[2][8][8][4]; ///< [half of the elements][word of a lane][column][lane % 4]
  double2 sizes[2][8][8][4];   ///< magnitudes; column kGroupPairs: ones
  double scores[2][kGroupPairs][kTileKeys], magnitudes[2][kGroupPairs][kTileKeys];
  double key_sizes[2][kTileKeys];
  double reduced[kWarps][4];
};
inline constexpr int kScorePitch = 320; ///< bytes: 16-byte reads of two rows meet every bank

__device__ inline void store_queries(const GroupCall &call, const KeyGroup &group,
                                     ScoreMemory &memory) {
  const Call &base = call.tiers.base;
  for (int at = static_cast<int>(threadIdx.x); at < 8 * kGroupDim / 2; at += kThreads) {
    const int column = at / (kGroupDim / 2), word = at % (kGroupDim / 2);
    double2 q{0.0, 0.0}, size{0.0, 0.0};
    if (column < group.pairs) {
      const int64_t from = base.q_at[group.row[column]] + group.head[column] * base.q_stride_head;
      const auto number = [&](int i) {
        if (i >= base.head_dim) return 0.0;
        const double x = load_element(base.q_dtype, call.tiers.fp8, base.q, from + i);
        return fabs(x) < HUGE_VAL ? x * 0x1p500 : 0.0; // else nothing is claimed
      };
      q = {number(2 * word), number(2 * word + 1)};
      size = {fabs(q.x), fabs(q.y)};
    } else if (column == kGroupPairs) {
      size = {0x1p500, 0x1p500};
    }
    const int half = word / 32, block = word % 32 / 16, part = word % 16 / 4, j = word % 4;
    memory.queries[half][4 * block + j][column][part] = q;
    memory.sizes[half][4 * block + j][column][part] = size;
  }
}

/// Of 16 keys over half of the elements.
__device__ inline void score_tile(const Decoder &decoder, const Words &words,
                                  const unsigned char *tile, ScoreMemory &memory) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int half = warp / 4, first = warp % 4 * 16, g = lane / 4, t = lane % 4;
  const unsigned char *k = tile + (first + g) * kScorePitch + 128 * half + 16 * t;
  double sum[2][4] = {}, size[2][4] = {};
#pragma unroll
  for (int block = 0; block < 2; ++block) {
    const uint4 a = *reinterpret_cast<const uint4 *>(k + 64 * block);
    const uint4 b = *reinterpret_cast<const uint4 *>(k + 64 * block + 8 * kScorePitch);
    const uint32_t near[4] = {a.x, a.y, a.z, a.w}, far[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      double x[4];
      words.decode(near[j], far[j], x);
      const double2 q = memory.queries[half][4 * block + j][g][t];
      multiply8(sum[j % 2], x, q.x, q.y);
      for (double &one : x)
        one = fabs(one);
      const double2 s = memory.sizes[half][4 * block + j][g][t];
      multiply8(size[j % 2], x, s.x, s.y);
    }
  }
  const double scale = decoder.score_scale();
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int column = 2 * t + e % 2, key = first + g + e / 2 * 8;
    if (column < kGroupPairs) {
      memory.scores[half][column][key] = (sum[0][e] + sum[1][e]) * scale;
      memory.magnitudes[half][column][key] = (size[0][e] + size[1][e]) * scale;
    }
    if (column == kGroupPairs) memory.key_sizes[half][key] = (size[0][e] + size[1][e]) * scale;
  }
}

__global__ void __launch_bounds__(kThreads, 2) score_units(const __grid_constant__ GroupCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto &memory = *reinterpret_cast<ScoreMemory *>(shared);
  SideLoop loop(call, false, kScorePitch, memory.side, shared + sizeof(ScoreMemory));
  const auto nothing = [](int) {};
  store_queries(call, loop.group, memory);
  loop.start(nothing);
  const Words words(call.tiers.base.kv_dtype == ASSAY_BF16);
  const int index = static_cast<int>(threadIdx.x) / kTileKeys;
  const int key = static_cast<int>(threadIdx.x) % kTileKeys;
  const bool present = index < loop.group.pairs;
  const auto number_of_group = static_cast<int>(&loop.group - call.groups);
  const PairWork &pair = call.pairs[number_of_group * kGroupPairs + (present ? index : 0)];
  const SeenKeys seen = seen_by(call, loop.group, index);
  const int kinds = call.tiers.base.subnormal != 0 ? kGroupKinds : static_cast<int>(kOfTiny);
  LogitSums sums;
  bool claim = true;
  for (int number = 0; number < loop.count(); ++number) {
    loop.turn_to(number, nothing);
    score_tile(loop.decoder, words, loop.tile(number), memory);
    __syncthreads();
    if (!present || pair.claim == 0) continue;
    const int position = loop.position(number) + key;
    const int64_t slot = loop.slot(number, index) + key;
    if (!seen(position)) {
      for (int kind = 0; kind < kinds; ++kind)
        call.kind(kind)[slot] = 0.0;
      continue;
    }
    const uint32_t marks = memory.side.marks[number % 2][key];
    const GroupScore of{{memory.scores[0][index][key] + memory.scores[1][index][key],
                         memory.magnitudes[0][index][key] + memory.magnitudes[1][index][key]},
                        memory.key_sizes[0][key] + memory.key_sizes[1][key],
                        (marks & kSubnormalMark) != 0,
                        memory.side.rows[number % 4][key]};
    Logit logit;
    if ((marks & kNotFinite) != 0 || !logit_of(call, pair, position - seen.begin, of, logit)) {
      claim = false;
      continue;
    }
    sums.add(logit);
    call.kind(kLogitX)[slot] = logit.x;
    call.kind(kLogitRadius)[slot] = logit.radius;
    call.kind(kLogitError)[slot] = logit.error;
  }
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const auto most = [](double a, double b) { return fmax(a, b); };
  const double own[4] = {sums.x_max, sums.x_abs, sums.x_error, claim ? 0.0 : 1.0};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const double all = over_some_lanes<32>(own[i], most);
    if (lane == 0) memory.reduced[warp][i] = all;
  }
  __syncthreads();
  if (threadIdx.x >= kGroupPairs) return;
  const double(&a)[4] = memory.reduced[2 * threadIdx.x],
        (&b)[4] = memory.reduced[2 * threadIdx.x + 1];
  call.logits[call.unit_pair(loop.unit, static_cast<int>(threadIdx.x))] = {
      most(a[0], b[0]), most(a[1], b[1]), most(a[2], b[2]), most(a[3], b[3]) == 0.0};
}

} // namespace assay::oracle::device
