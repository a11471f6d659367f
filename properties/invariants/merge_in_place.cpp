// SPDX-License-Identifier: Apache-2.0
// Property: writing the result over either input gives the bits of a merge into fresh memory.
// Catches: outputs written before all inputs are read. Bitwise.
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult merge_in_place(const Problem &p, Sut &sut) {
  Problem fresh = p;
  fresh.in_place = InPlace::kNo;
  Outcome apart = run_problem(fresh, sut);
  if (!apart.ok()) return apart.check;
  for (InPlace in_place : {InPlace::kOverA, InPlace::kOverB}) {
    Problem over = p;
    over.in_place = in_place;
    Outcome run = run_problem(over, sut);
    if (!run.ok()) return run.check;
    CheckResult c = same_result(apart, run, sut, "in place " + std::string(name_of(in_place)));
    if (!c.passed()) return c;
  }
  return CheckResult::pass();
}

} // namespace assay
