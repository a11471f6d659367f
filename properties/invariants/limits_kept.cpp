// SPDX-License-Identifier: Apache-2.0
// Property: a kernel that says so (checks_arguments) takes calls as large as assay.h allows, or has
// ASSAY_UNSUPPORTED for them, and refuses one larger: counts of blocks, rows, pages and states that
// no memory holds. It is asked, and runs nothing of them. Catches: limits that are missing, off by
// one, or of another product.
#include "properties/invariants/invariants.h"
#include "properties/relate/compared.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult limits_kept(const Problem &p, Sut &sut) {
  // The case's own call first: a kernel that refuses it has nothing to say here.
  const Outcome right = run_problem(p, sut);
  if (!right.ok()) return right.check;
  count_compared();
  const std::vector<WrongAnswer> wrong = sut.misjudged_limits(right.before);
  if (wrong.empty()) return CheckResult::pass();
  std::string others;
  if (wrong.size() > 1) others = ", and " + std::to_string(wrong.size() - 1) + " more";
  return CheckResult::fail("a call with " + wrong[0].text + others, symptom_of(wrong[0]));
}

} // namespace assay
