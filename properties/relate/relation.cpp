// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/relation.h"
#include "properties/call/element.h"
#include "properties/relate/compared.h"
#include "properties/relate/outcome.h"

#include <cmath>

#include <fmt/format.h>

namespace assay {

double comparable(float x, Dtype dtype) {
  if (!std::isinf(x)) return x;
  double largest = largest_finite(dtype);
  // Half the last place beyond the largest finite value.
  double threshold = dtype == Dtype::kFp16 ? 65520.0 : dtype == Dtype::kBf16 ? 0x1.ffp127 : largest;
  return x < 0 ? -threshold : threshold;
}

CheckResult within(double got, double want, double radius, const Element &element,
                   const std::string &what) {
  if (!std::isinf(radius)) count_compared();
  // Differences of doubles near fp32 values: their own rounding is below 2^-50 of the operands.
  double rounding = (std::fabs(got) + std::fabs(want)) * 0x1p-50;
  if (std::fabs(got - want) <= radius + rounding) return CheckResult::pass();
  if (std::isinf(radius)) return CheckResult::pass(); // nothing is claimed
  const auto &[row, head, dim] = element;
  return CheckResult::fail(fmt::format("{}: {} is {:.9g}, allowed {:.9g} +- {:.3g}", what,
                                       element_name(row, head, dim), got, want, radius),
                           wrong_value(row, head, dim, got, want, radius));
}

namespace {

/// Zero of either sign (a negative v_scale makes it negative) and -inf.
CheckResult empty_row(const Tensors &t, int row, int head, const std::string &what) {
  count_compared(static_cast<uint64_t>(t.problem.head_dim));
  bool empty = true;
  for (int i = 0; i < t.problem.head_dim; ++i)
    empty = empty && t.out_o(row, head, i) == 0.0f;
  if (t.lse.buffer >= 0) empty = empty && t.out_lse(row, head) == -INFINITY;
  if (empty) return CheckResult::pass();
  return CheckResult::fail(
      fmt::format("{}: row {} head {} has no keys and is not empty", what, row, head),
      wrong_element(Symptom::Kind::kNotEmpty, row, head, Symptom::kNowhere));
}

} // namespace

CheckResult row_related(RunBounds &of_a, int row_a, int head_a, RunBounds &of_b, int row_b,
                        int head_b, const Relation &relation, const std::string &what) {
  const RowBound x = of_a.row(row_a, head_a), y = of_b.row(row_b, head_b);
  const Outcome &a = of_a.run(), &b = of_b.run();
  if (!x.claim || !y.claim) return CheckResult::pass();
  if (x.empty || y.empty) return empty_row(b.after, row_b, head_b, what);
  for (int i = 0; i < a.before.problem.head_dim; ++i) {
    Dtype dtype = a.before.problem.dtype;
    double want =
        relation.scale * comparable(a.after.out_o(row_a, head_a, i), dtype) + relation.offset;
    double radius = std::fabs(relation.scale) * x.o_radius[i] + y.o_radius[i] +
                    relation.o_slack * std::fabs(want);
    CheckResult c = within(comparable(b.after.out_o(row_b, head_b, i), dtype), want, radius,
                           {row_b, head_b, i}, what);
    if (!c.passed()) return c;
  }
  if (a.after.lse.buffer < 0 || b.after.lse.buffer < 0) return CheckResult::pass();
  return within(b.after.out_lse(row_b, head_b),
                a.after.out_lse(row_a, head_a) + relation.lse_offset,
                x.lse_radius + y.lse_radius + relation.lse_slack, {row_b, head_b, -1}, what);
}

CheckResult all_related(const Outcome &a, const Outcome &b, const Relation &relation, Sut &sut,
                        const std::string &what) {
  return all_related(
      a, b, [&](int) { return relation; }, sut, what);
}

CheckResult all_related(const Outcome &a, const Outcome &b,
                        const std::function<Relation(int head)> &relation, Sut &sut,
                        const std::string &what) {
  RunBounds of_a(a, sut), of_b(b, sut);
  for (int r = 0; r < a.before.rows(); ++r)
    for (int h = 0; h < a.before.heads(); ++h) {
      CheckResult c = row_related(of_a, r, h, of_b, r, h, relation(h), what);
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

} // namespace assay
