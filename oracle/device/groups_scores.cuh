// SPDX-License-Identifier: Apache-2.0
// Internal: logits of pairs that share keys, a block a unit: q k and |q| |k| of four pairs and the
// sum of |k| by fp64 MMAs, or the kernel's own scores.
#pragma once

#include "oracle/device/groups_side.cuh"
#include "oracle/device/team.cuh"

namespace assay::oracle::device {

/// The pair of the group and the key of each tile that a thread works on.
struct PairKey {
  int index, key;

  __device__ PairKey()
      : index(static_cast<int>(threadIdx.x) / kTileKeys),
        key(static_cast<int>(threadIdx.x) % kTileKeys) {}
};

__device__ inline PairWork &pair_of(const GroupCall &call, const KeyGroup &group, int index) {
  const auto number = static_cast<int>(&group - call.groups);
  return call.pairs[number * kGroupPairs + (index < group.pairs ? index : 0)];
}

/// Sums or maxima over the lanes of a warp; all of them get it.
template <class Join>
__device__ inline double over_warp(double x, Join join) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    x = join(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

/// What the block's threads found of a unit: `warps` that follow each other have a pair.
__device__ inline void store_logit_parts(const GroupCall &call, int unit, int warps,
                                         const LogitSums &sums, bool claim, double (*reduced)[4]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const LargerOf most;
  const double own[4] = {sums.x_max, sums.x_abs, sums.x_error, claim ? 0.0 : 1.0};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const double all = over_warp(own[i], most);
    if (lane == 0) reduced[warp][i] = all;
  }
  __syncthreads();
  const int index = static_cast<int>(threadIdx.x);
  if (index < kWarps / warps) {
    double all[4] = {-HUGE_VAL, 0.0, 0.0, 0.0};
    for (int of = index * warps; of < (index + 1) * warps; ++of)
      for (int i = 0; i < 4; ++i)
        all[i] = most(all[i], reduced[of][i]);
    call.logits[call.unit_pair(unit, index)] = {all[0], all[1], all[2], all[3] == 0.0};
  }
  __syncthreads();
}

struct ScoreMemory {
  SideMemory side;
  double scores[2][kGroupPairs][kTileKeys], magnitudes[2][kGroupPairs][kTileKeys];
  double key_sizes[2][kTileKeys];
  double reduced[kWarps][4];
};
/// kPartDim elements of the queries, times 2^500: [half of them][word of a lane][column][lane % 4].
struct QueryPart {
  double2 queries[2][8][8][4];
  double2 sizes[2][8][8][4]; ///< magnitudes; column kGroupPairs: ones
};

/// Where things lie in a block's memory.
template <class Words>
struct ScorePlaces {
  static constexpr size_t kQueriesAt = (sizeof(ScoreMemory) + 127) / 128 * 128;

  __host__ __device__ static size_t tiles_at(int parts) {
    return kQueriesAt + static_cast<size_t>(parts) * sizeof(QueryPart);
  }
  __host__ __device__ static size_t bytes(int parts) {
    return tiles_at(parts) + 2 * kTileKeys * Words::kKeyPitch;
  }
};

/// Where two elements of a part meet those of the keys.
struct WordPlace {
  int half, word, lane;

  __device__ explicit WordPlace(int at)
      : half(at / 32), word(at % 32 / 16 * 4 + at % 4), lane(at % 16 / 4) {}
};

/// A warp's rows of a tile: 16 keys and half of a part's elements.
struct RowsOfWarp {
  int half, first, g, t;

  __device__ RowsOfWarp() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    half = warp / 4;
    first = warp % 4 * 16;
    g = lane / 4;
    t = lane % 4;
  }
  /// Calls f(word, elements as multiply8 takes them).
  template <class Words, class F>
  __device__ void each_word(const Words &words, const unsigned char *tile, F f) const {
    const unsigned char *row =
        tile + (first + g) * Words::kKeyPitch + Words::kBytes * (64 * half + 8 * t);
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      const unsigned char *near = row + Words::kBytes * 32 * block;
      const typename Words::Rows rows = Words::rows(near, near + 8 * Words::kKeyPitch);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        double x[4];
        words.decode(rows, j, x);
        f(4 * block + j, x);
      }
    }
  }
};

__device__ inline void store_queries(const GroupCall &call, const KeyGroup &group, int parts,
                                     QueryPart *to) {
  const Call &base = call.base;
  constexpr int kWords = kPartDim / 2;
  for (int at = static_cast<int>(threadIdx.x); at < parts * 8 * kWords; at += kThreads) {
    const int part = at / (8 * kWords), column = at / kWords % 8, word = at % kWords;
    double2 q{0.0, 0.0}, size{0.0, 0.0};
    if (column < group.pairs) {
      const auto number = [&](int i) {
        if (i >= base.head_dim) return 0.0;
        const double x = query_element(base, group.row[column], group.head[column], i);
        return fabs(x) < HUGE_VAL ? x * 0x1p500 : 0.0; // else nothing is claimed
      };
      const int first = kPartDim * part + 2 * word;
      q = {number(first), number(first + 1)};
      size = {fabs(q.x), fabs(q.y)};
    } else if (column == kGroupPairs) {
      size = {0x1p500, 0x1p500};
    }
    const WordPlace place(word);
    to[part].queries[place.half][place.word][column][place.lane] = q;
    to[part].sizes[place.half][place.word][column][place.lane] = size;
  }
}

/// A warp sums the scores of 16 keys over half of a part's elements, and adds them to those of
/// earlier parts.
template <class Words>
__device__ inline void score_tile(const Words &words, const unsigned char *tile,
                                  const QueryPart &query, bool first_part, ScoreMemory &memory) {
  const RowsOfWarp own;
  double sum[2][4] = {}, size[2][4] = {};
  own.each_word(words, tile, [&](int word, double(&x)[4]) {
    const double2 q = query.queries[own.half][word][own.g][own.t];
    multiply8(sum[word % 2], x, q.x, q.y);
    for (double &one : x)
      one = fabs(one);
    const double2 s = query.sizes[own.half][word][own.g][own.t];
    multiply8(size[word % 2], x, s.x, s.y);
  });
  const double scale = ldexp(1.0, words.exponent - 500);
  const auto put = [&](double &to, double x) { to = first_part ? x * scale : to + x * scale; };
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int column = 2 * own.t + e % 2, key = own.first + own.g + e / 2 * 8;
    if (column < kGroupPairs) {
      put(memory.scores[own.half][column][key], sum[0][e] + sum[1][e]);
      put(memory.magnitudes[own.half][column][key], size[0][e] + size[1][e]);
    }
    if (column == kGroupPairs) put(memory.key_sizes[own.half][key], size[0][e] + size[1][e]);
  }
}

template <class Words>
__device__ inline void score_unit(const GroupCall &call, int unit, unsigned char *shared) {
  auto &memory = *reinterpret_cast<ScoreMemory *>(shared);
  auto *queries = reinterpret_cast<QueryPart *>(shared + ScorePlaces<Words>::kQueriesAt);
  const int parts = SideLoop<Words>::parts_of(call.base.head_dim);
  SideLoop<Words> loop(call, unit, false, kAllParts, memory.side,
                       shared + ScorePlaces<Words>::tiles_at(parts));
  const auto nothing = [](int) {};
  store_queries(call, loop.group, parts, queries);
  loop.start(nothing);
  const PairKey own;
  const PairWork &pair = pair_of(call, loop.group, own.index);
  const bool present = own.index < loop.group.pairs && pair.claim != 0;
  const SeenKeys seen = seen_by(call, loop.group, own.index);
  const int kinds = call.kinds();
  LogitSums sums;
  bool claim = true;
  uint32_t marks = 0;
  for (int number = 0; number < loop.count(); ++number) {
    loop.turn_to(number, nothing);
    const int part = number % parts;
    score_tile(loop.words, loop.tile(number), queries[part], part == 0, memory);
    marks = (part == 0 ? 0 : marks) | memory.side.marks[number % 2][own.key];
    if (part + 1 < parts) continue;
    __syncthreads();
    if (!present) continue;
    const int position = loop.position(number) + own.key;
    const int64_t slot = loop.slot(number, own.index) + own.key;
    if (!seen(position)) {
      for (int kind = 0; kind < kinds; ++kind)
        call.kind(kind)[slot] = 0.0;
      continue;
    }
    const auto both = [&](const auto &halves) {
      return halves[0][own.index][own.key] + halves[1][own.index][own.key];
    };
    const GroupScore of{{both(memory.scores), both(memory.magnitudes)},
                        memory.key_sizes[0][own.key] + memory.key_sizes[1][own.key],
                        (marks & kSubnormal) != 0,
                        memory.side.places[number % 4][own.key]};
    Logit logit;
    if ((marks & kNotFinite) != 0 || !logit_of(call.base, pair, position - seen.begin, of, logit)) {
      claim = false;
      continue;
    }
    sums.add(logit);
    store_logit(call, slot, logit);
  }
  static_assert(kTileKeys == 2 * 32);
  store_logit_parts(call, unit, 2, sums, claim, memory.reduced);
}

struct ExactMemory {
  double reduced[kWarps][4];
  block_fma::Operand queries[kGroupPairs][kMaxDim];
};

/// The kernel's own scores in the place of q k, a thread a key. All threads have a pair.
__device__ inline void score_unit_exactly(const GroupCall &call, int unit, unsigned char *shared) {
  static_assert(kGroupPairs == 4);
  auto &memory = *reinterpret_cast<ExactMemory *>(shared);
  const Call &base = call.base;
  const KeyGroup &group = group_of(call, unit);
  for (int at = static_cast<int>(threadIdx.x); at < group.pairs * base.head_dim; at += kThreads) {
    const int index = at / base.head_dim, i = at % base.head_dim;
    memory.queries[index][i] =
        block_fma::operand(query_element(base, group.row[index], group.head[index], i),
                           base.facts.operand.min_exponent);
  }
  __syncthreads();
  const int threads = kThreads / (group.pairs > 2 ? 4 : group.pairs); // of a pair
  const int index = static_cast<int>(threadIdx.x) / threads;
  const PairWork &pair = pair_of(call, group, index);
  const SeenKeys seen = seen_by(call, group, index);
  const int begin = group.begin + (unit - group.first_unit) * call.unit_keys;
  const int end = min(begin + call.unit_keys, group.end);
  LogitSums sums;
  bool claim = true;
  const bool present = index < group.pairs && pair.claim != 0;
  for (int position = begin + static_cast<int>(threadIdx.x) % threads; present && position < end;
       position += threads) {
    if (!seen(position)) continue;
    const ElementPlace place =
        place_of(base, run_of(base, group, position), group.kv_head, position, false);
    Logit logit;
    if (!exact_logit_of(base, pair, position - seen.begin, place, memory.queries[index], logit)) {
      claim = false;
      continue;
    }
    sums.add(logit);
    store_logit(call, pair.slots + (position - seen.begin), logit);
  }
  store_logit_parts(call, unit, threads / 32, sums, claim, memory.reduced);
}

} // namespace assay::oracle::device
