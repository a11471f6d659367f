// SPDX-License-Identifier: Apache-2.0
// Property: the same call twice gives the same bits, and so does the call with its buffers at other
// addresses of other alignments. Catches: races, atomics in arrival order, results that depend on
// addresses. Bitwise; for kernels that declare run-to-run determinism.
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult run_to_run(const Problem &p, Sut &sut) {
  if (sut.kernel().determinism == ASSAY_DETERMINISM_NONE)
    return CheckResult::discard("the kernel declares no determinism");
  Outcome first = run_problem(p, sut);
  if (!first.ok()) return first.check;
  Outcome second = run_problem(p, sut);
  if (!second.ok()) return second.check;
  if (CheckResult c = same_bits(first.after, second.after, "second run of the same call");
      !c.passed())
    return c;
  Problem moved = p;
  moved.base_seed = p.base_seed == 0 ? 1 + (p.q.seed ^ p.v.seed) / 2 : 0;
  const Outcome elsewhere = run_problem(moved, sut);
  if (!elsewhere.ok()) return elsewhere.check;
  return same_bits(first.after, elsewhere.after, "the same call with its buffers elsewhere");
}

} // namespace assay
