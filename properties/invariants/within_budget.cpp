// SPDX-License-Identifier: Apache-2.0
// Property: every element of O and LSE lies within the budget that the kernel's declared arithmetic
// earns around the exact result. Catches: anything that changes a value. Within bound.
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult within_budget(const Problem &p, Sut &sut) {
  Outcome run = run_problem(p, sut);
  if (!run.ok()) return run.check;
  return inside_budget(run, sut);
}

} // namespace assay
