// SPDX-License-Identifier: Apache-2.0
// Property: started early, behind a kernel that writes q and the newest tokens at the last moment,
// a call gives the bits it gives alone, from a plan made by a call of its own where the kernel has
// one. Catches: reads, writes and exits before the wait for the grid in front. Bitwise; where the
// executor can see the order itself, a hazard.
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult early_start_equals_plain(const Problem &p, Sut &sut) {
  Problem launched = p;
  launched.early_start = false;
  Outcome plain = run_problem(launched, sut);
  if (!plain.ok()) return plain.check;
  launched.early_start = true;
  Outcome early = run_problem(launched, sut);
  if (!early.ok()) return early.check;
  return same_bits(plain.after, early.after, "early start");
}

} // namespace assay
