// SPDX-License-Identifier: Apache-2.0
// What device/tiers says of a call against what the host says, element by element, tier by tier.
#pragma once

#include <gtest/gtest.h>

#include "oracle/device/tiers.h"
#include "oracle/tests/along_error.h"
#include "oracle/tests/random_call.h"

namespace assay::oracle::test {

/// How far a budget may be from the host's, relatively: 1e-9, and 1e-5 where a score is rounded to
/// 16 bits: logits then have errors of many binades, and budgets of a GPU are 1.7e-6 off at most.
inline double apart_of(const Options &o) {
  const bool coarse = o.q_error > 0x1p-20f || o.q_format || o.product_format || o.qk_sum_format;
  return coarse ? 1e-5 : 1e-9;
}

struct TiersCompared {
  double apart = 1e-9; ///< apart_of(the call)
  uint64_t elements = 0, of_tier[3] = {}, rows = 0, inside = 0;
  uint64_t claims_apart = 0, disjoint = 0, verdicts_apart = 0, ratios_apart = 0;
  uint64_t as_one = 0, near = 0; ///< rows that are judged as one, and that need more directions
  double least = INFINITY, most = 0.0;               ///< budgets over the host's
  double least_radius = INFINITY, most_radius = 0.0; ///< radii likewise

  bool agrees() const {
    return claims_apart + disjoint + verdicts_apart + ratios_apart == 0 && least > 1 - apart &&
           most < 1 + apart && least_radius > 1 - 1e-6 && most_radius < 1 + 1e-6;
  }
  void add(const TiersCompared &o) {
    apart = std::max(apart, o.apart);
    elements += o.elements;
    rows += o.rows;
    inside += o.inside;
    as_one += o.as_one;
    near += o.near;
    for (int i = 0; i < 3; ++i)
      of_tier[i] += o.of_tier[i];
    claims_apart += o.claims_apart;
    disjoint += o.disjoint;
    verdicts_apart += o.verdicts_apart;
    ratios_apart += o.ratios_apart;
    least = std::min(least, o.least);
    most = std::max(most, o.most);
    least_radius = std::min(least_radius, o.least_radius);
    most_radius = std::max(most_radius, o.most_radius);
  }
};

inline void compare_element(const ElementBounds &got, bool claim, const Enclosure &exact,
                            double bound, int tier, TiersCompared &out) {
  if (std::isnan(got.bound) == claim) {
    ++out.claims_apart;
    return;
  }
  if (!claim) return;
  ++out.elements;
  ++out.of_tier[tier];
  if (std::isinf(bound) || std::isinf(got.bound)) {
    if (bound != got.bound) ++out.claims_apart;
    return;
  }
  if (!(std::fabs(got.mid - exact.mid) <= got.rad + exact.rad)) ++out.disjoint;
  out.least = std::min(out.least, got.bound / bound);
  out.most = std::max(out.most, got.bound / bound);
  if (exact.rad == 0.0) return;
  out.least_radius = std::min(out.least_radius, got.rad / exact.rad);
  out.most_radius = std::max(out.most_radius, got.rad / exact.rad);
}

/// The terms of a budget, one by one.
inline bool same_terms(const BudgetTerms &a, const BudgetTerms &b, double apart) {
  const double slack = apart * (std::fabs(a.total) + std::fabs(b.total));
  const auto same = [&](double x, double y) { return x == y || std::fabs(x - y) <= slack; };
  return same(a.weights, b.weights) && same(a.p_rounding, b.p_rounding) &&
         same(a.accumulation, b.accumulation) && same(a.normalisation, b.normalisation) &&
         same(a.merge, b.merge) && same(a.output_rounding, b.output_rounding) &&
         same(a.flush, b.flush);
}

/// Both largest ratios of a tier, or neither.
inline bool same_ratio(double ours, double host, double slack) {
  const bool none = std::isnan(host);
  if (none || ours < 0.0) return none == (ours < 0.0);
  return std::fabs(ours - host) <= 1e-6 + slack;
}

/// What is said of a pair as one, that is inside.
inline void compare_as_one(const TierRow &ours, const AlongOfHost &host, TiersCompared &out) {
  out.as_one += ours.worst[4] >= 0.0;
  out.near += ours.near != 0;
  if (!same_as_one(ours, host)) ++out.ratios_apart;
}

/// `first_alone`: of the host's tiers the first is looked at.
inline TiersCompared compare_tiers(const RandomCall &call, const TierReport &report,
                                   bool first_alone = false) {
  TiersCompared out;
  out.apart = apart_of(call.options);
  AttentionReader reader(call.rows, call.model);
  const auto dims = static_cast<size_t>(call.rows.out.dims);
  const int heads = call.rows.out.heads;
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < heads; ++head) {
      RowReference exact = attention_row(reader.problem(row, head));
      const auto at = static_cast<size_t>(row * heads + head);
      const TierRow &ours = report.rows[at];
      Report host = judge_one(call.rows, call.outputs(), call.model, row, head);
      const CallOutputs outputs = call.outputs();
      const Written written = read_outputs(call.rows.out, outputs, {}, row, head);
      const bool replayed = exact.t1.applies();
      if (first_alone) {
        exact.t1 = exact.t2 = {};
        host = judge_row(reader.problem(row, head), exact, written.o.data(),
                         written.has_lse ? &written.lse : nullptr, row, head);
      }
      // Where the host replays it does not look at the row as one.
      if (ours.inside != 0 && !(first_alone && replayed))
        compare_as_one(
            ours, along_error(reader.problem(row, head).keys->v.data(), exact, written.o), out);
      ++out.rows;
      out.inside += ours.inside != 0 ? 1 : 0;
      // The host tries more directions of a row that is nearly outside as one.
      const bool as_one =
          ours.inside != 0 && ours.near != 0 && host.worst.dim == ElementReport::kRow;
      const bool inside = (host.verdict == Verdict::kInside || as_one) && host.no_claim == 0;
      // What only MPFI decides, infinity and rows without keys are the host's.
      const bool left = host.escalated > 0 || exact.empty || std::isinf(host.worst.got);
      if (ours.inside != 0 ? !inside : inside && !left) ++out.verdicts_apart;
      if (ours.inside != 0 && !(same_ratio(ours.worst[0], host.worst_ratio_t0, 0) &&
                                same_ratio(ours.worst[1], host.worst_ratio_t1, 0) &&
                                same_ratio(ours.worst[2], host.worst_ratio_t2, 0) &&
                                same_ratio(ours.worst[3], host.worst_ratio_lse, 0)))
        ++out.ratios_apart;
      const TierElement &worst = ours.element;
      if (ours.inside != 0 && worst.dim == host.worst.dim && worst.tier == host.worst.tier &&
          !same_terms(worst.budget, host.worst.budget, out.apart))
        ++out.ratios_apart;
      if (exact.empty) continue;
      const auto *elements = &report.elements[at * (dims + 1)];
      if (!exact.claim) { // nor is any made there
        for (size_t i = 0; i <= dims; ++i)
          out.claims_apart += std::isnan(elements[i][0].bound) ? 0 : 1;
        continue;
      }
      const ReplayedRow *replays[] = {&exact.t1, &exact.t2};
      for (size_t i = 0; i < dims; ++i) {
        compare_element(elements[i][0], !exact.t0[i].overflow_possible, exact.o[i],
                        exact.t0[i].total, 0, out);
        for (int t = 0; t < 2; ++t)
          if (replays[t]->applies())
            compare_element(elements[i][static_cast<size_t>(t) + 1], true, replays[t]->o[i],
                            replays[t]->budget[i].total, t + 1, out);
          else
            out.claims_apart += !std::isnan(elements[i][static_cast<size_t>(t) + 1].bound);
      }
      compare_element(elements[dims][0], true, exact.lse, exact.lse_budget, 0, out);
      if (exact.t2.applies())
        compare_element(elements[dims][2], true, exact.t2.lse, exact.t2.lse_budget, 2, out);
    }
  return out;
}

inline void expect_agreement(const TiersCompared &c, int call) {
  EXPECT_EQ(c.claims_apart, 0u) << "call " << call;
  EXPECT_EQ(c.disjoint, 0u) << "call " << call;
  EXPECT_EQ(c.verdicts_apart, 0u) << "call " << call;
  EXPECT_EQ(c.ratios_apart, 0u) << "call " << call;
  EXPECT_GT(c.least, 1 - c.apart) << "call " << call;
  EXPECT_LT(c.most, 1 + c.apart) << "call " << call;
  EXPECT_GT(c.least_radius, 1 - 1e-6) << "call " << call;
  EXPECT_LT(c.most_radius, 1 + 1e-6) << "call " << call;
}

} // namespace assay::oracle::test
