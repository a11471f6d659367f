// SPDX-License-Identifier: Apache-2.0
// Property: started early, behind a kernel that writes q and the newest tokens at the last moment,
// a call gives the bits it gives alone, from a plan made by a call of its own where the kernel has
// one. Catches: reads, writes and exits before the wait for the grid in front. Bitwise; where the
// executor can see the order itself, a hazard. In every second case with several tokens a tile ends
// among the newest tokens, which shows what counts as newest; so it does, with ragged queries, in
// every second case of a kernel that takes them.
#include <algorithm>

#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

/// More tokens than most requests have: all q_len newest may be written late.
void have_ragged_queries(Problem &p) {
  p.q_len = std::max(p.q_len, 4 + pick(p, 0xea52, 5));
  p.query_tokens.clear();
  for (int r = 0; r < p.batch; ++r)
    p.query_tokens.push_back(pick(p, 0xea53 + r, p.q_len + 1));
}

void end_a_tile_among_the_newest(Problem &p) {
  for (int r = 0; r < p.batch; ++r) {
    int &len = p.seq_lens[r];
    const int tile = len < 72 ? 16 : 64;
    len = std::max(0, len - 8) / tile * tile + pick(p, 0xea51 + r, std::min(len, p.q_len) + 1);
  }
  if (p.placement == Placement::kExplicit) p.placement = Placement::kReversed;
  p.page_ids.clear();
}

} // namespace

CheckResult pdl_equals_plain(const Problem &p, Sut &sut) {
  Problem launched = p;
  if (pick(p, 0xea50, 2) == 0) {
    if (sut.kernel().capabilities & ASSAY_RAGGED_QUERIES) have_ragged_queries(launched);
    if (launched.q_len > 1) end_a_tile_among_the_newest(launched);
  }
  launched.enable_pdl = false;
  Outcome plain = run_problem(launched, sut);
  if (plain.check.unsupported) { // of several tokens, perhaps
    launched = p;
    launched.enable_pdl = false;
    plain = run_problem(launched, sut);
  }
  if (!plain.ok()) return plain.check;
  launched.enable_pdl = true;
  Outcome early = run_problem(launched, sut);
  if (!early.ok()) return early.check;
  return same_result(plain, early, sut, "early start");
}

} // namespace assay
