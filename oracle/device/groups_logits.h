// SPDX-License-Identifier: Apache-2.0
// Internal: a pair of a group before its keys, and the logits of those. A Team works on a pair. One
// text for the host, where it is one thread, and for a GPU.
#pragma once

#include "oracle/bounds/block_fma_step.h"
#include "oracle/device/call_rows.h"
#include "oracle/device/groups_call.h"

namespace assay::oracle::device {

/// What a query comes to.
struct QueryLook {
  double largest = 0.0, sum = 0.0;
  bool plain = true;

  ORACLE_HOST_DEVICE void add(double x) {
    const double size = fabs(x);
    largest = fmax(largest, size < HUGE_VAL ? size : HUGE_VAL); // NaN as well
    sum += size;
    plain = plain && (size == 0.0 || (size >= 0x1p-14 && size < 0x1p15));
  }
};

ORACLE_HOST_DEVICE inline float query_element(const Call &call, int row, int head, int i) {
  return load_element(call.q_dtype, call.q, call.q_at[row] + head * call.q_stride_head + i);
}

/// The kernel's own scores can be had: the bits of a scaled query are not known.
ORACLE_HOST_DEVICE inline bool has_exact_scores(const Call &call, const PairWork &pair) {
  return !call.facts.features.fp8 || (call.q_dtype == ASSAY_FP16 && pair.plain_query != 0);
}

ORACLE_HOST_DEVICE inline int tiles_of(const Call &call, int row, int visible) {
  if (call.replays == 0) return (visible + kTileKeys - 1) / kTileKeys;
  return static_cast<int>(call.first_tile[row + 1] - call.first_tile[row]);
}

/// The pair's query, and what is known before its keys.
template <class Team>
ORACLE_HOST_DEVICE inline void start_pair(const GroupCall &call, Team &team, int number) {
  const KeyGroup &group = call.groups[number / kGroupPairs];
  const int index = number % kGroupPairs;
  PairWork &pair = call.pairs[number];
  if (index >= group.pairs) {
    if (team.rank() == 0) pair.row = -1;
    return;
  }
  const Call &base = call.base;
  const int row = group.row[index], head = group.head[index];
  QueryLook look;
  for (int i = team.rank(); i < base.head_dim; i += team.size())
    look.add(query_element(base, row, head, i));
  look.largest = team.most(look.largest);
  look.sum = team.sum(look.sum);
  look.plain = !team.any(!look.plain);
  const int visible = base.end[row] - base.begin[row];
  const bool sink = has_sink(base, head);
  if (team.rank() == 0) {
    pair.row = row;
    pair.head = head;
    pair.begin = base.begin[row];
    pair.visible = visible;
    pair.sink = sink;
    pair.tiles = tiles_of(base, row, visible) + (sink ? 1 : 0);
    pair.first_tile = group.tiles[index];
    pair.slots = group.slots + int64_t{index} * group.stride + (pair.begin - group.begin);
    pair.plain_query = look.plain;
    pair.replayed = pair.aimed = 0;
    pair.claim = visible > 0 && look.largest < HUGE_VAL &&
                 start_numbers(base, row, head, visible, look.largest, pair.numbers);
    pair.numbers.q_sum = look.sum;
    if (sink) pair.sunk = sink_logit(pair.numbers.facts.features);
    if (sink && !(fabs(pair.sunk.x) + pair.sunk.error < kFp32Limit)) pair.claim = 0;
  }
  team.sync();
  bool align = base.facts.rounds_kv;
  for (int i = team.rank(); i < base.head_dim; i += team.size()) {
    const double size = fabs(static_cast<double>(query_element(base, row, head, i)));
    align = align || (size != 0.0 && size < pair.numbers.q_least);
  }
  align = team.any(align);
  if (team.rank() == 0) pair.align = align;
}

/// Starts the pair once more, with the kernel's own scores. It claims nothing where the first round
/// claimed nothing.
template <class Team>
ORACLE_HOST_DEVICE inline void start_exact_pair(const GroupCall &exact, const GroupCall &first,
                                                Team &team, int number) {
  start_pair(exact, team, number);
  PairWork &pair = exact.pairs[number];
  if (team.rank() != 0 || pair.row < 0) return;
  if (first.pairs[number].claim == 0 || !has_exact_scores(exact.base, pair)) pair.claim = 0;
}

/// What subnormal operands of a key add to the magnitude that addends are aligned by; and its
/// largest element.
struct KeyExcess {
  double sum = 0.0, largest = 0.0;

  ORACLE_HOST_DEVICE KeyExcess(const Call &call, const PairWork &pair, const ElementPlace &k) {
    const double least_q = pair.numbers.q_least;
    double least_k = ldexp(1.0, call.facts.operand.min_exponent);
    if (call.facts.rounds_kv) least_k /= pair.numbers.facts.features.k_scale;
    for (int i = 0; i < call.head_dim; ++i) {
      const double a = fabs(static_cast<double>(query_element(call, pair.row, pair.head, i)));
      const double b = fabs(static_cast<double>(k.element(call.kv_dtype, i)));
      largest = fmax(largest, b);
      if (a == 0.0 || b == 0.0 || (a >= least_q && b >= least_k)) continue;
      sum += fmax(a, least_q) * fmax(b, least_k);
    }
  }
};

/// Rounded behind its scale, an element of that size stays finite.
ORACLE_HOST_DEVICE inline bool fits_rounded(const RowFacts &facts, double largest, float scale) {
  const double size = fabs(static_cast<double>(scale));
  return !facts.rounds_kv || largest * size < facts.operand.max_finite * 0.99;
}

/// What is known of a key's score: `subnormal`: the key at `k` has such elements.
struct GroupScore {
  Score score;
  double key_size;
  bool subnormal;
  ElementPlace k;
};

ORACLE_HOST_DEVICE inline KeyFacts facts_of_key(const Call &call, const PairWork &pair, int j) {
  KeyFacts facts;
  const int behind = call.behind == nullptr ? 0 : call.behind[pair.row];
  facts.distance =
      static_cast<double>(call.shard.position(int64_t{pair.begin} + j) -
                          call.shard.position(int64_t{pair.begin} + pair.visible - 1) + behind);
  facts.head_dim = call.head_dim;
  return facts;
}

/// The logit of key `j` of the pair. False: nothing is claimed.
ORACLE_HOST_DEVICE inline bool logit_of(const Call &call, const PairWork &pair, int j,
                                        const GroupScore &of, Logit &logit) {
  KeyFacts facts = facts_of_key(call, pair, j);
  facts.key_magnitude = of.key_size;
  if (pair.align != 0 || of.subnormal) {
    const KeyExcess excess(call, pair, of.k);
    facts.excess = excess.sum;
    const RowFacts &row = pair.numbers.facts;
    if (!fits_rounded(row, excess.largest, row.features.k_scale)) return false;
  }
  return key_logit(pair.numbers, of.score, facts, logit);
}

/// The logit of a key from the kernel's own score (block_fma.h). `q` is the query as operands.
ORACLE_HOST_DEVICE inline bool exact_logit_of(const Call &call, const PairWork &pair, int j,
                                              const ElementPlace &place,
                                              const block_fma::Operand *q, Logit &logit) {
  const int least = call.facts.operand.min_exponent;
  block_fma::Operand k[block_fma::kMaxBlock];
  block_fma::Accumulator sum;
  double magnitude = 0.0;
  int count = 0;
  for (int i = 0; i < call.head_dim; ++i) {
    const float x = place.element(call.kv_dtype, i);
    magnitude += fabs(static_cast<double>(query_element(call, pair.row, pair.head, i)) * x);
    k[count++] = block_fma::operand(x, least);
    if (count < call.mma_block && i + 1 < call.head_dim) continue;
    sum = block_fma::step(sum, q + (i + 1 - count), k, count, call.mma_fraction_bits);
    count = 0;
  }
  KeyFacts facts = facts_of_key(call, pair, j);
  facts.exact = true;
  return key_logit(pair.numbers, {sum.value(), magnitude}, facts, logit);
}

/// The logits of a unit for a pair.
struct LogitSums {
  double x_max = -HUGE_VAL, x_abs = 0.0, x_error = 0.0;

  ORACLE_HOST_DEVICE void add(const Logit &logit) {
    x_max = fmax(x_max, logit.x);
    x_abs = fmax(x_abs, fabs(logit.x) + logit.radius + logit.error);
    x_error = fmax(x_error, logit.error + logit.radius);
  }
};

ORACLE_HOST_DEVICE inline Logit logit_at(const GroupCall &call, int64_t slot) {
  return {call.kind(kLogitX)[slot], call.kind(kLogitRadius)[slot], call.kind(kLogitError)[slot]};
}
ORACLE_HOST_DEVICE inline void store_logit(const GroupCall &call, int64_t slot,
                                           const Logit &logit) {
  call.kind(kLogitX)[slot] = logit.x;
  call.kind(kLogitRadius)[slot] = logit.radius;
  call.kind(kLogitError)[slot] = logit.error;
}

} // namespace assay::oracle::device
