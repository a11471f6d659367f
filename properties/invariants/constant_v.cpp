// SPDX-License-Identifier: Apache-2.0
// Property: when every key has the same value vector, O is that vector, whatever the scores.
// Catches: weights that do not sum to one, rescaling applied to O or to the row sum alone, masked
// keys in one of the two. Within bound around a value known without the oracle.
#include "properties/invariants/bounds.h"
#include "properties/invariants/invariants.h"

namespace assay {

CheckResult constant_v(const Problem &p, Sut &sut) {
  Problem flat = p;
  flat.v.regime = Regime::kConstant;
  flat.v.exponent = 0;
  Outcome run = run_problem(flat, sut);
  if (!run.ok()) return run.check;
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < run.after.heads(); ++h) {
      RowBound bound = row_bound(run, sut, r, h);
      if (!bound.claim || bound.empty) continue;
      for (int i = 0; i < p.head_dim; ++i) {
        float want = from_bits(p.dtype, value_bits(flat, {0, h / p.group_size, 0, i}));
        CheckResult c = within(run.after.out_o(r, h, i), want, bound.o_radius[i],
                               element_name(r, h, i), "constant V");
        if (!c.passed()) return c;
      }
    }
  return CheckResult::pass();
}

} // namespace assay
