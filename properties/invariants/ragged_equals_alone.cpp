// SPDX-License-Identifier: Apache-2.0
// Property: a request with n of the query tokens of a ragged call gives what it gives in a call of
// its own, with q_len n. Catches: tokens and rows of another request, positions counted from q_len,
// rows that there are not, batch strides, plans and masks of the longest request for all. Within
// bound, pairwise: a call with fewer rows may take another kernel.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/one_request.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

Problem with_ragged_queries(const Problem &p) {
  Problem out = p;
  if (p.q_len == 1) out.q_len = 2 + pick(p, 0x4a9, 7);
  for (int r = 0; p.query_tokens.empty() && r < p.batch; ++r)
    out.query_tokens.push_back(pick(p, 0x4aa + r, out.q_len + 1));
  return out;
}

CheckResult check_alone(RunBounds &of_all, const Tensors &all, int request, Sut &sut) {
  const int tokens = query_tokens(all.problem, request);
  Problem one = one_request(all.problem, request);
  one.query_tokens.clear();
  one.q_len = tokens;
  Tensors t = materialise(one);
  copy_request(t, 0, all, request);
  Outcome alone = run_tensors(std::move(t), sut);
  if (!alone.ok()) return alone.check;
  RunBounds of_alone(alone, sut);
  for (int token = 0; token < tokens; ++token)
    for (int h = 0; h < all.heads(); ++h) {
      CheckResult c = row_related(of_all, row_of(all.problem, {request, token}), h, of_alone, token,
                                  h, {}, "request of a ragged call in a call of its own");
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

} // namespace

CheckResult ragged_equals_alone(const Problem &p, Sut &sut) {
  constexpr int kMostCalls = 8;
  if (p.batch == 0) return CheckResult::discard("no requests");
  Outcome all = run_problem(with_ragged_queries(p), sut);
  if (!all.ok()) return all.check;
  RunBounds of_all(all, sut);
  const int first = pick(p, 0x4a8, p.batch);
  for (int i = 0; i < std::min(p.batch, kMostCalls); ++i) {
    const int request = (first + i) % p.batch;
    if (query_tokens(all.before.problem, request) == 0) continue;
    CheckResult c = check_alone(of_all, all.before, request, sut);
    if (!c.passed()) return c;
  }
  return CheckResult::pass();
}

} // namespace assay
