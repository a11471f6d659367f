// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/certify.h"

#include <algorithm>
#include <cmath>

#include "oracle/bounds/block_fma.h"
#include "oracle/bounds/replay.h"

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
  scale *= static_cast<double>(problem.features.q_scale);
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
      map_exactly(problem.features, key_distance(problem, j), precision, score);
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
  total /= Interval(precision_, problem_.features.o_scale);
  return total;
}

Interval CertifiedRow::lse() const {
  Interval result(sum_);
  result.apply_log2();
  result += top_;
  if (problem_.lse_base == ASSAY_LSE_BASE_E) result *= Interval::ln2(precision_);
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
  const bool natural = problem.lse_base == ASSAY_LSE_BASE_E;
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

void Certification::check(const Enclosure &fast, const Interval &certified, int tier, int dim) {
  ++values;
  if (encloses(fast, certified)) return;
  if (misses++ > 0) return;
  const std::string element = dim < 0 ? "the LSE" : "dim " + std::to_string(dim);
  first_miss = element + " of tier " + std::to_string(tier) + ": the fast enclosure " +
               std::to_string(fast.mid) + " +- " + std::to_string(fast.rad) +
               " does not hold the certified value " + std::to_string(certified.middle());
}

namespace {

// The replayed values of one tier, as intervals.
void certify_replay(const RowProblem &problem, const ReplayedRow &fast, int tier,
                    const CertifiedRow &row, const std::vector<double> *scores,
                    std::span<const int> dims, Certification &out) {
  RowWork work;
  prepare_row(problem, work, scores);
  KeyReplay replay;
  ReplayBudget budget;
  replay_keys(problem, work, replay, budget);
  for (int dim : dims) {
    out.check(fast.o[static_cast<size_t>(dim)],
              row.replayed_output(replay.p, replay.shift, work.x_max, dim), tier, dim);
  }
}

} // namespace

Certification certify_row(const RowProblem &problem, const RowReference &row,
                          std::span<const int> dims, int precision) {
  Certification out;
  if (!row.claim || row.empty) return out;
  const CertifiedRow certified(problem, precision);
  out.check(row.lse, certified.lse(), 0, -1);
  for (int dim : dims)
    out.check(row.o[static_cast<size_t>(dim)], certified.output(dim), 0, dim);
  if (row.t1.applies()) certify_replay(problem, row.t1, 1, certified, nullptr, dims, out);
  if (!row.t2.applies()) return out;
  const std::vector<double> scores = replay_scores(problem);
  const CertifiedRow replayed(problem, precision, &scores);
  out.check(row.t2.lse, replayed.lse(), 2, -1);
  certify_replay(problem, row.t2, 2, replayed, &scores, dims, out);
  return out;
}

Certification certify_row(const MergeProblem &problem, const MergeReference &reference,
                          std::span<const int> dims, int precision) {
  Certification out;
  const RowReference &row = reference.row;
  if (!row.claim || row.empty || reference.only_state >= 0) return out;
  out.check(row.lse, certified_merge(problem, -1, precision), 0, -1);
  for (int dim : dims)
    out.check(row.o[static_cast<size_t>(dim)], certified_merge(problem, dim, precision), 0, dim);
  return out;
}

bool encloses(const Enclosure &outer, const Interval &inner) {
  Interval distance(inner);
  distance -= outer.mid;
  distance.apply_abs();
  if (distance.certainly_at_most(outer.rad)) return true;
  // The value itself may lie on the end of the enclosure, that of a mean of equal values on the end
  // of their hull: then the interval, which is never a point, reaches beyond it.
  return !distance.certainly_above(outer.rad) && inner.width() <= 0x1p-60 * outer.rad;
}

} // namespace assay::oracle
