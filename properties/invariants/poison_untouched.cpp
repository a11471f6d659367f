// SPDX-License-Identifier: Apache-2.0
// Property: what lies in dead memory (page tails, unreferenced pages, stride and table padding,
// workspace, outputs on entry, the o of empty states) never changes a bit of the result, and
// nothing outside the outputs is written. Catches: masks applied after the arithmetic, reads past
// the last key, uninitialised workspace, stray writes. Bitwise.
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult poison_untouched(const Problem &p, Sut &sut) {
  Outcome first = run_problem(p, sut);
  if (!first.ok()) return first.check;
  Problem other = p;
  other.poison = static_cast<Poison>((static_cast<int>(p.poison) + 1) % 4);
  Outcome second = run_problem(other, sut);
  if (!second.ok()) return second.check;
  return same_result(first, second, sut,
                     "with " + std::string(name_of(other.poison)) + " instead of " +
                         std::string(name_of(p.poison)) + " in dead memory");
}

} // namespace assay
