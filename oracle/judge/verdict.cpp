// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/verdict.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "oracle/exact/dtype.h"
#include "oracle/judge/certify.h"
#include "oracle/judge/declared_away.h"
#include "oracle/judge/joint_verdict.h"

namespace assay::oracle {
namespace {

constexpr size_t kMaxFindings = 16;
constexpr int kFirstPrecision = 128;

int severity(Verdict verdict) {
  if (verdict == Verdict::kOutside) return 2;
  return verdict == Verdict::kUndecided ? 1 : 0;
}

void raise_to(double &worst, double ratio) {
  if (!(worst >= ratio)) worst = ratio;
}

void fail(Report &report, ElementReport element, Reason reason) {
  element.verdict = Verdict::kOutside;
  element.ratio = INFINITY;
  element.reason = reason;
  report.add(element);
}

struct Tier {
  int index;
  const Enclosure &reference;
  const BudgetTerms &budget;
  std::function<Interval(int)> certified;
};

// An infinite bound says nothing: scores so uncertain that the error of 2^x overflows. Claims are
// counted with T0; a replay that has none leaves T0's verdict.
void withdraw_claim(Report &report, int tier) {
  if (tier != 0) return;
  --report.claimed;
  ++report.no_claim;
}

// NaN and infinity are classified before anything is compared.
void judge_value(Report &report, ElementReport element, const Tier &tier, assay_dtype dtype) {
  element.tier = tier.index;
  element.reference = tier.reference;
  element.budget = tier.budget;
  if (std::isnan(element.got)) return fail(report, element, Reason::kNan);
  const double magnitude = std::fabs(tier.reference.mid) + tier.reference.rad;
  if (std::isinf(element.got)) {
    const double before_rounding =
        tier.budget.total - tier.budget.output_rounding + tier.budget.earlier_rounding;
    const double signed_limit =
        std::copysign(1.0, element.got) * tier.reference.mid + tier.reference.rad + before_rounding;
    const bool may_overflow = dtype != ASSAY_FP32 &&
                              magnitude + before_rounding >= format_of(dtype).overflow_threshold &&
                              signed_limit >= format_of(dtype).overflow_threshold;
    if (!may_overflow) return fail(report, element, Reason::kInfinity);
    return report.add(element);
  }
  if (std::isinf(tier.budget.total)) return withdraw_claim(report, tier.index);
  const double distance = std::fabs(static_cast<double>(element.got) - tier.reference.mid);
  element.ratio = distance / tier.budget.total;
  const Decision decision = decide(element.got, tier.reference, tier.budget.total, tier.certified);
  element.verdict = decision.verdict;
  report.escalated += decision.escalated;
  if (decision.verdict == Verdict::kOutside) element.reason = Reason::kOutside;
  if (decision.verdict == Verdict::kUndecided)
    element.reason =
        std::isfinite(tier.budget.total) ? Reason::kUndecided : Reason::kBoundNotFinite;
  report.add(element);
}

ElementReport element_at(int request, int head, int dim, float got) {
  ElementReport element;
  element.request = request;
  element.head = head;
  element.dim = dim;
  element.got = got;
  return element;
}

void judge_zeros(Report &report, const float *o, int dims, int request, int head) {
  for (int i = 0; i < dims; ++i) {
    ElementReport element = element_at(request, head, i, o[i]);
    ++report.claimed;
    if (!(o[i] == 0.0f)) {
      fail(report, element, Reason::kEmptyNotZero);
    } else {
      report.add(element);
    }
  }
}

void judge_empty(Report &report, const float *o, int dims, const float *lse, int request,
                 int head) {
  judge_zeros(report, o, dims, request, head);
  if (!lse) return;
  ++report.claimed;
  ElementReport element = element_at(request, head, -1, *lse);
  if (*lse == -INFINITY) return report.add(element);
  fail(report, element, Reason::kEmptyLse);
}

void judge_lse(Report &report, const Tier &tier, float lse, int request, int head) {
  judge_value(report, element_at(request, head, -1, lse), tier, ASSAY_FP32);
}

BudgetTerms lse_terms(double total) {
  BudgetTerms terms;
  terms.total = total;
  return terms;
}

void judge_row_lse(Report &report, const RowProblem &problem, const RowReference &row, float lse,
                   int request, int head) {
  ++report.claimed;
  const auto exact = [&](int precision) { return CertifiedRow(problem, precision).lse(); };
  const BudgetTerms budget = lse_terms(row.lse_budget);
  judge_lse(report, {0, row.lse, budget, exact}, lse, request, head);
  if (!row.t2.applies()) return;
  const auto replay = [&](int precision) { return certified_replay(problem, 2, -1, precision); };
  const BudgetTerms sharp = lse_terms(row.t2.lse_budget);
  judge_lse(report, {2, row.t2.lse, sharp, replay}, lse, request, head);
}

ExactOutputs exact_outputs(const RowProblem &problem) {
  return [&problem](int precision) {
    return [row = std::make_shared<CertifiedRow>(problem, precision)](int dim) {
      return row->output(dim);
    };
  };
}

ExactOutputs exact_outputs(const MergeProblem &problem) {
  return [&problem](int precision) {
    return [&problem, precision](int dim) { return certified_merge(problem, dim, precision); };
  };
}

// Without a claim: counted, so that a report shows how much was really checked.
bool skip_row(Report &report, const RowReference &row, int dims, bool lse) {
  if (row.claim) return false;
  report.no_claim += static_cast<uint64_t>(dims) + (lse ? 1 : 0);
  return true;
}

void add_budget(Report &report, const RowReference &row, size_t dim) {
  double least = row.t0[dim].total;
  for (const ReplayedRow *replay : {&row.t1, &row.t2})
    if (replay->applies()) least = std::min(least, replay->budget[dim].total);
  report.budgets.add(least, row.o[dim].mid);
}

Report start_report(int dims, bool lse) {
  Report report;
  report.elements = static_cast<uint64_t>(dims) + (lse ? 1 : 0);
  return report;
}

} // namespace

void Report::add(const ElementReport &element) {
  double &ratio = element.dim == ElementReport::kRow   ? worst_ratio_row
                  : element.dim == ElementReport::kLse ? worst_ratio_lse
                  : element.tier == 2                  ? worst_ratio_t2
                  : element.tier == 1                  ? worst_ratio_t1
                                                       : worst_ratio_t0;
  raise_to(ratio, element.ratio);
  const bool worse = severity(element.verdict) > severity(verdict);
  const bool same = severity(element.verdict) == severity(verdict);
  if (worse || (same && element.ratio >= worst.ratio)) worst = element;
  if (worse) verdict = element.verdict;
  if (element.verdict == Verdict::kInside) return;
  ++finding_count;
  if (findings.size() < kMaxFindings) findings.push_back(element);
}

void Report::add_row_ratio(double ratio, bool was_escalated) {
  raise_to(worst_ratio_row, ratio);
  escalated += was_escalated;
}

void Report::add_whole_rows(const Report &again) {
  if (!std::isnan(again.worst_ratio_row)) raise_to(worst_ratio_row, again.worst_ratio_row);
  for (const ElementReport &finding : again.findings)
    if (finding.dim == ElementReport::kRow) add(finding);
}

void Report::merge(const Report &other) {
  const bool worse = severity(other.verdict) > severity(verdict);
  const bool same = severity(other.verdict) == severity(verdict);
  if (worse || (same && other.worst.ratio >= worst.ratio)) worst = other.worst;
  if (worse) verdict = other.verdict;
  elements += other.elements;
  claimed += other.claimed;
  no_claim += other.no_claim;
  declared_away += other.declared_away;
  budgets.merge(other.budgets);
  escalated += other.escalated;
  certified_rows += other.certified_rows;
  finding_count += other.finding_count;
  raise_to(worst_ratio_t0, other.worst_ratio_t0);
  if (!std::isnan(other.worst_ratio_t1)) raise_to(worst_ratio_t1, other.worst_ratio_t1);
  if (!std::isnan(other.worst_ratio_t2)) raise_to(worst_ratio_t2, other.worst_ratio_t2);
  if (!std::isnan(other.worst_ratio_lse)) raise_to(worst_ratio_lse, other.worst_ratio_lse);
  if (!std::isnan(other.worst_ratio_row)) raise_to(worst_ratio_row, other.worst_ratio_row);
  for (const ElementReport &finding : other.findings) {
    if (findings.size() < kMaxFindings) findings.push_back(finding);
  }
}

Decision decide(float got, const Enclosure &reference, double bound,
                const std::function<Interval(int)> &certified, int max_precision) {
  if (!std::isfinite(bound)) return {Verdict::kUndecided, false}; // anything would be inside
  // Rounding of this comparison itself, in double.
  const double slack =
      reference.rad + 0x1p-50 * (std::fabs(reference.mid) + std::fabs(got)) + 0x1p-50 * bound;
  const double distance = std::fabs(static_cast<double>(got) - reference.mid);
  if (distance + slack <= bound) return {Verdict::kInside, false};
  if (distance - slack > bound) return {Verdict::kOutside, false};
  for (int precision = kFirstPrecision; precision <= max_precision; precision *= 2) {
    Interval gap = certified(precision);
    gap -= static_cast<double>(got);
    gap.apply_abs();
    if (gap.certainly_at_most(bound)) return {Verdict::kInside, true};
    if (gap.certainly_above(bound)) return {Verdict::kOutside, true};
  }
  return {Verdict::kUndecided, true};
}

Report judge_row(const RowProblem &problem, const RowReference &row, const float *o,
                 const float *lse, int request, int head) {
  const int dims = problem.keys->value_dim();
  Report report = start_report(dims, lse != nullptr);
  if (row.empty && !row.sunken) {
    judge_empty(report, o, dims, lse, request, head);
    return report;
  }
  if (skip_row(report, row, dims, lse != nullptr)) {
    if (row.finite_inputs) report.declared_away = declared_away(problem, lse, report.no_claim);
    return report;
  }
  if (row.sunken) {
    judge_zeros(report, o, dims, request, head);
    if (lse) judge_row_lse(report, problem, row, *lse, request, head);
    return report;
  }
  for (int i = 0; i < dims; ++i) {
    const auto at = static_cast<size_t>(i);
    if (row.t0[at].overflow_possible) {
      ++report.no_claim;
      continue;
    }
    ++report.claimed;
    add_budget(report, row, at);
    const ElementReport element = element_at(request, head, i, o[i]);
    const auto exact = [&](int precision) { return CertifiedRow(problem, precision).output(i); };
    judge_value(report, element, {0, row.o[at], row.t0[at], exact}, problem.output());
    for (int tier : {1, 2}) {
      const ReplayedRow &replayed = tier == 1 ? row.t1 : row.t2;
      if (!replayed.applies()) continue;
      const auto replay = [&, tier](int precision) {
        return certified_replay(problem, tier, i, precision);
      };
      judge_value(report, element, {tier, replayed.o[at], replayed.budget[at], replay},
                  problem.output());
    }
  }
  if (report.verdict == Verdict::kInside)
    judge_joint(report, problem.keys->v.data(), row, o, exact_outputs(problem), request, head);
  if (lse) judge_row_lse(report, problem, row, *lse, request, head);
  report.declared_away = declared_away(problem, lse, report.no_claim);
  return report;
}

Report judge_row(const MergeProblem &problem, const MergeReference &reference, const float *o,
                 const float *lse, int row, int head) {
  const int dims = problem.head_dim;
  const RowReference &exact = reference.row;
  Report report = start_report(dims, lse != nullptr);
  if (exact.empty) {
    judge_empty(report, o, dims, lse, row, head);
    return report;
  }
  if (skip_row(report, exact, dims, lse != nullptr)) return report;
  const int only = reference.only_state;
  for (int i = 0; i < dims; ++i) {
    const auto at = static_cast<size_t>(i);
    const ElementReport element = element_at(row, head, i, o[i]);
    if (only < 0 && exact.t0[at].overflow_possible) {
      ++report.no_claim;
      continue;
    }
    ++report.claimed;
    if (only < 0) add_budget(report, exact, at);
    const size_t source = static_cast<size_t>(std::max(only, 0)) * static_cast<size_t>(dims) + at;
    if (only >= 0 && std::bit_cast<uint32_t>(o[i]) != std::bit_cast<uint32_t>(problem.o[source])) {
      fail(report, element, Reason::kOneStateOutput);
      continue;
    }
    const auto certified = [&](int precision) { return certified_merge(problem, i, precision); };
    judge_value(report, element, {0, exact.o[at], exact.t0[at], certified}, problem.dtype);
  }
  if (report.verdict == Verdict::kInside)
    judge_joint(report, reference.live.data(), exact, o, exact_outputs(problem), row, head);
  if (!lse) return report;
  if (only >= 0 && std::bit_cast<uint32_t>(*lse) != std::bit_cast<uint32_t>(problem.lse[only])) {
    ++report.claimed;
    fail(report, element_at(row, head, -1, *lse), Reason::kOneStateLse);
    return report;
  }
  ++report.claimed;
  const auto certified = [&](int precision) { return certified_merge(problem, -1, precision); };
  const BudgetTerms budget = lse_terms(exact.lse_budget);
  judge_lse(report, {0, exact.lse, budget, certified}, *lse, row, head);
  return report;
}

} // namespace assay::oracle
