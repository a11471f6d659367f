// SPDX-License-Identifier: Apache-2.0
// Property: a kernel that says so (checks_arguments) refuses each call that assay.h forbids: the
// case's own call with one argument made wrong, every one that a host can see. Catches: argument
// checks that are missing, look at another field, or stand behind a return.
#include "properties/invariants/invariants.h"
#include "properties/relate/compared.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult bad_calls_refused(const Problem &p, Sut &sut) {
  // The right call first: a kernel that refuses everything has nothing to say here.
  const Outcome right = run_problem(p, sut);
  if (!right.ok()) return right.check;
  count_compared();
  const std::vector<WrongAnswer> accepted = sut.accepted_bad_calls(right.before);
  if (accepted.empty()) return CheckResult::pass();
  std::string others;
  if (accepted.size() > 1) others = ", and " + std::to_string(accepted.size() - 1) + " more";
  return CheckResult::fail("does not refuse a call that assay.h forbids: " + accepted[0].text +
                               others,
                           symptom_of(accepted[0]));
}

} // namespace assay
