// SPDX-License-Identifier: Apache-2.0
// Property: scores of 1e5, common offsets and steep ramps give finite O and LSE, inside the budget.
// Catches: exponentials of positive numbers, missing maximum, missing -inf guards, finite
// sentinels. Finiteness is checked without the oracle.
#include <algorithm>
#include <cmath>

#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult extreme_scores_finite(const Problem &p, Sut &sut) {
  static constexpr Regime kRegimes[] = {Regime::kHuge, Regime::kOffset, Regime::kRising,
                                        Regime::kFalling, Regime::kDominant};
  Problem extreme = p;
  extreme.k.regime = kRegimes[pick(p, 0xe87, 5)];
  extreme.q.regime = Regime::kNormal;
  if (p.v.regime == Regime::kNearMax) extreme.v.regime = Regime::kNormal;
  // A scaled fp8 value may rightly leave the range of an fp16 output.
  if (is_fp8(p)) extreme.v.exponent = std::min(p.v.exponent, 0);
  Outcome run = run_problem(extreme, sut);
  if (!run.ok()) return run.check;
  auto finite = [&](float x, int row, int head, int dim) {
    if (std::isfinite(x)) return CheckResult::pass();
    return CheckResult::fail(element_name(row, head, dim) + " is not finite under " +
                                 std::string(name_of(extreme.k.regime)) + " scores",
                             wrong_element(Symptom::Kind::kNotFinite, row, head, dim));
  };
  for (int r = 0; r < run.after.rows(); ++r)
    for (int h = 0; h < run.after.heads() && visible_count(p, r) > 0; ++h) {
      for (int i = 0; i < p.head_dim; ++i)
        if (auto c = finite(run.after.out_o(r, h, i), r, h, i); !c.passed()) return c;
      if (!p.has_lse) continue;
      if (auto c = finite(run.after.out_lse(r, h), r, h, -1); !c.passed()) return c;
    }
  return inside_budget(run, sut);
}

} // namespace assay
