// SPDX-License-Identifier: Apache-2.0
// Property: the same call twice gives the same bits. Catches: races, atomics in arrival order,
// results that depend on addresses. Bitwise; for kernels that declare run-to-run determinism.
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
  return same_bits(first.after, second.after, "second run of the same call");
}

} // namespace assay
