// SPDX-License-Identifier: Apache-2.0
// Random cases: a row, a schedule, an arithmetic; and what the oracle says about an emulated run.
#pragma once

#include <cstdlib>
#include <random>

#include "oracle/bounds/row_formulas.h"
#include "oracle/judge/verdict.h"
#include "oracle/tests/emulation.h"
#include "oracle/tests/regimes.h"

namespace assay::oracle::test {

struct Case {
  Regime regime = Regime::kNormal;
  RowData row;
  assay_dtype dtype = ASSAY_BF16;
  assay_lse_base base = ASSAY_LSE_BASE_E;
  float sm_scale = 1.0f;
  Emulation emulation;
  int splits = 1;
  TileOrder order; ///< order of the visible keys
  RowFeatures features;
  KeySet sunk; ///< the keys and the sink, and their order
  TileOrder sunk_order;

  /// Call after the last change to keys and features.
  void set_features(const RowFeatures &f) {
    features = f;
    if (!f.has_sink()) return;
    sunk = row.keys.with_sink(operand_dtype(dtype, f.fp8, emulation.kv_format));
    sunk_order = order;
    append_sink(sunk_order, static_cast<int>(row.keys.size()));
  }
  RowProblem problem(bool with_order) const {
    RowProblem p;
    p.q = row.q;
    p.features = features;
    p.keys = features.has_sink() ? &sunk : &row.keys;
    p.dtype = dtype;
    p.sm_scale = sm_scale;
    p.lse_base = base;
    p.arithmetic = declared(emulation);
    p.order = !with_order ? nullptr : features.has_sink() ? &sunk_order : &order;
    p.max_splits = splits;
    // The bit replay follows one convention for subnormal operands; the other bounds cover both.
    p.replay_scores = emulation.low_subnormals && emulation.block > 0 &&
                      emulation.unit_q_format == ASSAY_FORMAT_FP32;
    p.combine_stages = splits > 1 || emulation.combine ? emulation.stages : 0;
    // A kernel may skip the merge of a single split; the bound with a stage covers it.
    if (p.combine_stages == 0) p.combine_stages = static_cast<int>(emulation.seed & 1);
    return p;
  }
  RowOutput run() const {
    return emulate_row(row.q, row.keys, dtype, sm_scale, base, order, emulation, features);
  }
  Report judge(const RowOutput &out, bool with_order) const {
    const RowProblem p = problem(with_order);
    return judge_row(p, attention_row(p), out.o.data(), &out.lse, 0, 0);
  }
};

inline Case draw_case(std::mt19937_64 &random, int max_keys) {
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  Case c;
  c.regime = static_cast<Regime>(pick(static_cast<int>(Regime::kCount)));
  c.dtype = pick(2) ? ASSAY_BF16 : ASSAY_FP16;
  c.base = pick(2) ? ASSAY_LSE_BASE_2 : ASSAY_LSE_BASE_E;
  const int d = 16 << pick(4);
  const int limit = pick(60) == 0 ? 8 * max_keys : pick(4) == 0 ? 40 : max_keys;
  const int n = 1 + pick(limit);
  c.row = draw_row(c.regime, c.dtype, n, d, random);
  c.sm_scale = 1.0f / std::sqrt(static_cast<float>(d));
  if (pick(4) == 0) c.sm_scale *= 0.25f + 0.01f * static_cast<float>(pick(300));
  Emulation &e = c.emulation;
  e.tile = 16 << pick(3);
  e.states = 1 << pick(3);
  e.combine = pick(2);
  e.stages = e.combine && pick(4) == 0 ? 2 : 1;
  e.maxima = static_cast<Maxima>(pick(4));
  e.low_subnormals = pick(2);
  e.noise = static_cast<Noise>(pick(4));
  e.seed = random();
  const int arithmetic = pick(8);
  if (arithmetic == 0) e.block = 0;
  if (arithmetic == 1) e.block = 8, e.fraction_bits = 24;
  c.splits = pick(3) ? 1 + pick(6) : 1;
  if (e.block > 0) e.p_parts = 1 + static_cast<int>(e.seed >> 20 & 1);
  c.order = deal_tiles(n, e.tile, c.splits, e.states, e.p_parts);
  return c;
}

/** Gives a case declared errors of 2^-22 to 2^-4, used up at random, on one side or where they
   distort most, and tiles of 1 to 256 keys. */
inline void widen_errors(Case &c, std::mt19937_64 &random) {
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  Emulation &e = c.emulation;
  const double mantissa = 1.0 + 0.1 * pick(10);
  e.exp2_error = std::ldexp(mantissa, -4 - pick(19));
  if (pick(2)) e.log2_error = std::ldexp(1.0, -4 - pick(19));
  if (pick(2)) e.rcp_error = std::ldexp(1.0, -4 - pick(19));
  e.noise = static_cast<Noise>(1 + pick(4));
  e.tile = 1 << pick(9);
  c.order = deal_tiles(static_cast<int>(c.row.keys.size()), e.tile, c.splits, e.states, e.p_parts);
}

/** Formats of Q behind its scale, of products with K and their sums, and of O. Of the seed, so that
   other draws stay what they were. */
inline void vary_products(Emulation &e) {
  const uint64_t bits = e.seed >> 46;
  const auto one_of = [&](int from, int limit) {
    return ASSAY_FORMAT_CALL + static_cast<int>((bits >> from) % static_cast<uint64_t>(limit));
  };
  if (bits % 4 == 0) e.q_format = one_of(2, ASSAY_FORMAT_TF32);
  if ((bits >> 5) % 6 == 0) e.product_format = one_of(8, 3);
  if ((bits >> 10) % 8 == 0) e.qk_sum_format = one_of(13, 3);
  if ((bits >> 3) % 3 == 0) e.output_format = one_of(15, 3);
}

/** Gives a case formats of P, row sum and Q, and natural exponentials. */
inline void vary_formats(Case &c, std::mt19937_64 &random) {
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  Emulation &e = c.emulation;
  e.p_format = pick(ASSAY_FORMAT_TF32 + 1);
  if (pick(2)) e.sum_format = ASSAY_FORMAT_CALL + pick(3);
  e.natural = pick(2);
  if (pick(4) == 0) e.unit_q_format = ASSAY_FORMAT_FP16 + pick(4);
  if (pick(2)) e.partial_format = ASSAY_FORMAT_CALL + pick(3);
  if (pick(4) == 0) e.score_format = ASSAY_FORMAT_CALL + pick(3);
  if (pick(2)) e.p_scale_log2 = pick(9);
  e.rounded_before_scale = pick(2);
  vary_products(e);
}

/** Makes a case one of fp32 tensors, which most of its products take as tf32. */
inline void widen_tensors(Case &c, std::mt19937_64 &random) {
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  const auto keys = static_cast<int>(c.row.keys.size());
  c.dtype = ASSAY_FP32;
  c.row = draw_row(c.regime, ASSAY_FP32, keys, c.row.keys.head_dim, random);
  Emulation &e = c.emulation;
  const assay_format formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_TF32, ASSAY_FORMAT_TF32,
                                  ASSAY_FORMAT_BF16};
  e.kv_format = formats[pick(4)];
  e.q_format = formats[pick(4)];
  e.p_format = formats[pick(4)];
}

/** What a campaign keeps of its reports. */
struct Tally {
  uint64_t outputs = 0, violations = 0, undecided = 0, no_claim = 0;
  uint64_t replayed = 0; ///< rows with T1
  double t0 = 0, t1 = 0, t2 = 0, lse = 0, row = 0;
  void add(const Report &report) {
    outputs += report.claimed;
    no_claim += report.no_claim;
    // One output outside makes the row so: the findings of an undecided row are all undecided.
    (report.verdict == Verdict::kUndecided ? undecided : violations) += report.finding_count;
    t0 = std::max(t0, report.worst_ratio_t0);
    if (!std::isnan(report.worst_ratio_t1)) t1 = std::max(t1, report.worst_ratio_t1), ++replayed;
    if (!std::isnan(report.worst_ratio_t2)) t2 = std::max(t2, report.worst_ratio_t2);
    if (!std::isnan(report.worst_ratio_row)) row = std::max(row, report.worst_ratio_row);
    if (!std::isnan(report.worst_ratio_lse)) lse = std::max(lse, report.worst_ratio_lse);
  }
  void add(const Tally &o) {
    outputs += o.outputs;
    violations += o.violations;
    undecided += o.undecided;
    no_claim += o.no_claim;
    replayed += o.replayed;
    t0 = std::max(t0, o.t0);
    t1 = std::max(t1, o.t1);
    t2 = std::max(t2, o.t2);
    lse = std::max(lse, o.lse);
    row = std::max(row, o.row);
  }
};

/** The output rounding dwarfs the other terms, so they are also tried without it. */
inline double worst_before_rounding(const Case &c, const RowReference &row) {
  Case unrounded = c;
  unrounded.emulation.round_output = false;
  const RowOutput out = unrounded.run();
  double worst = 0.0;
  const auto ratio = [&](size_t i, const Enclosure &reference, const BudgetTerms &budget) {
    if (budget.overflow_possible) return;
    const double distance = std::fabs(out.o[i] - reference.mid) - reference.rad;
    worst = std::max(worst, distance / (errors_of(budget) * kSlack));
  };
  for (size_t i = 0; i < out.o.size() && row.claim; ++i) {
    ratio(i, row.o[i], row.t0[i]);
    if (row.t1.applies()) ratio(i, row.t1.o[i], row.t1.budget[i]);
    if (row.t2.applies()) ratio(i, row.t2.o[i], row.t2.budget[i]);
  }
  return worst;
}

/** Sizes of the statistical tests grow with this environment variable (default 1). */
inline int effort() {
  const char *text = std::getenv("ASSAY_ORACLE_EFFORT");
  return text ? std::max(1, std::atoi(text)) : 1;
}

} // namespace assay::oracle::test
