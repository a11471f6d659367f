// SPDX-License-Identifier: Apache-2.0
// Property: when every key has the same value vector, O is that vector, whatever the scores.
// Catches: weights that do not sum to one, rescaling applied to O or to the row sum alone, masked
// keys in one of the two. A sink has no value of its own: cases run without one. Within bound
// around a value known without the oracle.
#include "properties/call/element.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult constant_v(const Problem &p, Sut &sut) {
  Problem flat = p;
  flat.v.regime = Regime::kConstant;
  flat.v.exponent = 0;
  flat.sinks = Sinks::kNone;
  Outcome run = run_problem(flat, sut);
  if (!run.ok()) return run.check;
  RunBounds bounds(run, sut);
  for (int r = 0; r < run.after.rows(); ++r)
    for (int h = 0; h < run.after.heads(); ++h) {
      RowBound bound = bounds.row(r, h);
      if (!bound.claim || bound.empty) continue;
      for (int i = 0; i < p.head_dim; ++i) {
        double want = from_bits(kv_dtype(p), value_bits(flat, {0, h / p.group_size, 0, i}));
        want *= run.before.value_scale(h / p.group_size);
        CheckResult c = within(comparable(run.after.out_o(r, h, i), p.dtype), want,
                               bound.o_radius[i], {r, h, i}, "constant V");
        if (!c.passed()) return c;
      }
    }
  return CheckResult::pass();
}

} // namespace assay
