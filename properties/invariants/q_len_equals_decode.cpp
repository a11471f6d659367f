// SPDX-License-Identifier: Apache-2.0
// Property: a call with q_len query tokens gives what q_len calls with one token each give, token i
// over the keys up to its own position. Catches: causal bounds off by one, token strides, rows of a
// packed tile mixed up, ALiBi and windows measured from the last token. Within bound, pairwise.
#include <algorithm>

#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult q_len_equals_decode(const Problem &p, Sut &sut) {
  Problem several = p;
  forget_shard(several);
  if (p.q_len == 1) several.q_len = 2 + pick(p, 0x91e, 7);
  // A shorter row names fewer pages.
  if (several.placement == Placement::kExplicit) several.placement = Placement::kReversed;
  several.page_ids.clear();
  Outcome all = run_problem(several, sut);
  if (!all.ok()) return all.check;
  RunBounds of_all(all, sut);
  const int tokens = several.q_len;
  for (int token = 0; token < tokens; ++token) {
    Problem one = with_one_token(several);
    const auto has_token = [&](int request) { return token < query_tokens(several, request); };
    for (int r = 0; r < p.batch; ++r)
      if (has_token(r))
        one.seq_lens[r] = std::max(0, one.seq_lens[r] - query_tokens(several, r) + 1 + token);
    Tensors t = materialise(one);
    for (int r = 0; r < p.batch; ++r)
      for (int h = 0; has_token(r) && h < t.heads(); ++h)
        copy_query(t, r, h, all.before, row_of(several, {r, token}), h);
    Outcome single = run_tensors(std::move(t), sut);
    if (!single.ok()) return single.check;
    const std::string what = "query token " + std::to_string(token) + " in a call of its own";
    RunBounds of_single(single, sut);
    for (int r = 0; r < p.batch; ++r)
      for (int h = 0; has_token(r) && h < all.before.heads(); ++h) {
        CheckResult c =
            row_related(of_all, row_of(several, {r, token}), h, of_single, r, h, {}, what);
        if (!c.passed()) return c;
      }
  }
  return CheckResult::pass();
}

} // namespace assay
