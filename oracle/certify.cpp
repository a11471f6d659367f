// SPDX-License-Identifier: Apache-2.0
#include "oracle/certify.h"

#include <algorithm>
#include <cmath>

#include "oracle/block_fma.h"
#include "oracle/replay.h"

namespace assay::oracle {

namespace {

// The base-2 logit of a scaled score; `distance`: key position less query position.
void map_exactly(const RowFeatures &features, double distance, int precision, Interval &x) {
  const Interval ln2 = Interval::ln2(precision);
  if (features.softcap > 0.0f) {
    x *= ln2; // back to the natural base
    x /= Interval(precision, features.softcap);
    x.apply_tanh();
    x *= static_cast<double>(features.softcap);
    x /= ln2;
  }
  if (!features.alibi) return;
  Interval bias(precision, static_cast<double>(features.slope) * distance); // exact: 24 + 20 bits
  bias /= ln2;
  x += bias;
}

} // namespace

CertifiedRow::CertifiedRow(const RowProblem &problem, int precision,
                           const std::vector<double> *scores)
    : problem_(problem), precision_(precision), top_(-INFINITY), sum_(precision) {
  const KeySet &keys = *problem.keys;
  Interval scale(precision, problem.sm_scale);
  scale *= static_cast<double>(problem.features.k_scale);
  scale /= Interval::ln2(precision);
  weight_.reserve(keys.size());
  Interval product(precision);
  for (size_t j = 0; j < keys.size(); ++j) {
    Interval score(precision);
    if (scores) score += (*scores)[j];
    for (size_t i = 0; i < problem.q.size() && !scores; ++i) {
      const double exact = static_cast<double>(problem.q[i]) * static_cast<double>(keys.key(j)[i]);
      score += exact;
    }
    score *= scale;
    if (j < keys.visible()) {
      const double distance = static_cast<double>(j) - static_cast<double>(keys.visible() - 1);
      map_exactly(problem.features, distance, precision, score);
    } else {
      score = Interval(precision, problem.features.sink);
      score /= Interval::ln2(precision);
    }
    top_ = std::max(top_, score.middle());
    weight_.push_back(score);
  }
  for (Interval &weight : weight_) {
    weight -= top_;
    weight.apply_exp2();
    sum_ += weight;
  }
}

Interval CertifiedRow::output(int dim) const {
  Interval total(precision_);
  for (size_t j = 0; j < weight_.size(); ++j) {
    Interval term(weight_[j]);
    term *= static_cast<double>(problem_.keys->value(j)[dim]);
    total += term;
  }
  total /= sum_;
  total *= static_cast<double>(problem_.features.v_scale);
  return total;
}

Interval CertifiedRow::lse() const {
  Interval result(sum_);
  result.apply_log2();
  result += top_;
  if (problem_.lse_base == ASSAY_LSE_NATURAL) result *= Interval::ln2(precision_);
  return result;
}

Interval CertifiedRow::replayed_output(const std::vector<double> &p,
                                       const std::vector<double> &shift, double x_max,
                                       int dim) const {
  Interval total(precision_);
  for (size_t j = 0; j < p.size(); ++j) {
    if (p[j] == 0.0) continue;
    Interval term(precision_, shift[j]);
    term.apply_exp2();
    term *= p[j];
    term *= static_cast<double>(problem_.keys->value(j)[dim]);
    total += term;
  }
  // The replay's scale is 2^x_max, the sum's is 2^top.
  Interval scale(precision_, x_max);
  scale -= top_;
  scale.apply_exp2();
  total *= scale;
  total /= sum_;
  total *= static_cast<double>(problem_.features.v_scale);
  return total;
}

Interval certified_replay(const RowProblem &problem, int tier, int dim, int precision) {
  std::vector<double> scores;
  if (tier == 2) scores = replay_scores(problem);
  const std::vector<double> *given = tier == 2 ? &scores : nullptr;
  const CertifiedRow row(problem, precision, given);
  if (dim < 0) return row.lse();
  RowWork work;
  prepare_row(problem, work, given);
  KeyReplay replay;
  ReplayBudget budget;
  replay_keys(problem, work, replay, budget);
  return row.replayed_output(replay.p, replay.shift, work.x_max, dim);
}

Interval certified_merge(const MergeProblem &problem, int dim, int precision) {
  double top = -INFINITY;
  for (float lse : problem.lse)
    top = std::max<double>(top, lse);
  const bool natural = problem.lse_base == ASSAY_LSE_NATURAL;
  Interval sum(precision), total(precision);
  for (size_t s = 0; s < problem.states(); ++s) {
    if (problem.lse[s] == -INFINITY) continue;
    Interval weight(precision, problem.lse[s]);
    weight -= top;
    if (natural) weight /= Interval::ln2(precision);
    weight.apply_exp2();
    sum += weight;
    if (dim < 0) continue;
    weight *= static_cast<double>(problem.o[s * static_cast<size_t>(problem.head_dim) + dim]);
    total += weight;
  }
  if (dim >= 0) {
    total /= sum;
    return total;
  }
  sum.apply_log2();
  if (natural) sum *= Interval::ln2(precision);
  sum += top;
  return sum;
}

bool encloses(const Enclosure &outer, const Interval &inner) {
  Interval distance(inner);
  distance -= outer.mid;
  distance.apply_abs();
  return distance.certainly_at_most(outer.rad);
}

} // namespace assay::oracle
