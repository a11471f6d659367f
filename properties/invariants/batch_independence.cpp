// SPDX-License-Identifier: Apache-2.0
// Property: a request alone gives what it gives inside its batch, and so do one, two, four and so
// on of neighbours, until all have been compared. Catches: LSE or O in another request's slot, row
// offsets, plans that cut one request by another's length, shared scratch. Bitwise, except where
// the kernel declares that a row's bits may follow the batch (batch_invariance): there both runs
// must be within the budget. Without the even_lengths hint, which lets v1 look at the batch.
#include <algorithm>

#include "properties/call/materialise.h"
#include "properties/case/simplify.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/one_request.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

void copy_state(Tensors &to, const View &to_o, const View &to_lse, int to_state,
                const Tensors &from, const View &o, const View &lse, int state) {
  for (int h = 0; h < from.heads(); ++h) {
    to.set_bits(to_lse, to_state, h, 0, from.bits(lse, state, h));
    for (int i = 0; i < from.problem.head_dim; ++i)
      to.set_bits(to_o, to_state, h, i, from.bits(o, state, h, i));
  }
}

/// The capacity of every page table is a parameter of the call, which a kernel's cuts may follow
/// whatever its batch: calls that are compared keep it.
MaterialiseOptions same_capacity(const Tensors &t) {
  MaterialiseOptions options;
  for (const CacheView &cache : t.caches)
    options.least_columns.push_back(cache.max_pages);
  return options;
}

/// The requests [begin, end) in a call of their own. Which pages they share depends on their
/// numbers: here they share none.
Outcome run_piece(const Outcome &all, int begin, int end, Sut &sut) {
  const Problem &p = all.before.problem;
  Problem piece = without_requests(without_requests(p, end, p.batch), 0, begin);
  if (piece.sharing != Sharing::kDuplicate) piece.sharing = Sharing::kNone;
  Tensors t = materialise(piece, same_capacity(all.before));
  for (int place = 0; place < piece.batch; ++place)
    copy_request(t, place, all.before, begin + place);
  return run_tensors(std::move(t), sut);
}

/// All requests, in pieces of 1, 2, 4, ... of them: few calls, and twice the work at most.
CheckResult compare_pieces(const Outcome &all, Sut &sut) {
  const Problem &p = all.before.problem;
  for (int begin = 0, size = 1; begin < p.batch; begin += size, size *= 2) {
    const int end = std::min(p.batch, begin + size);
    const Outcome piece = run_piece(all, begin, end, sut);
    if (!piece.ok()) return piece.check;
    for (int row = 0; row < piece.after.rows(); ++row)
      for (int h = 0; h < all.after.heads(); ++h) {
        CheckResult c = same_row_bits(all.after, row_of(p, {begin, 0}) + row, h, piece.after, row,
                                      h, "request among fewer than in its batch");
        if (!c.passed()) return c;
      }
  }
  return CheckResult::pass();
}

} // namespace

CheckResult batch_independence(const Problem &p, Sut &sut) {
  if (p.batch < 2) return CheckResult::discard("one row");
  Problem batch = p;
  batch.even_lengths = false;
  Outcome all = run_problem(batch, sut);
  if (!all.ok()) return all.check;
  int row = pick(p, 0xa10e, p.batch);
  Problem single = one_request(batch, row);
  if (p.family == Family::kMergeStates) single.num_states = states_of_row(p, row);
  Tensors one = materialise(single, same_capacity(all.before));
  if (is_attention(p)) copy_request(one, 0, all.before, row);
  for (int side = 0; p.family == Family::kMergeState && side < 2; ++side)
    copy_state(one, one.in_o[side], one.in_lse[side], 0, all.before, all.before.in_o[side],
               all.before.in_lse[side], row);
  for (int s = 0; p.family == Family::kMergeStates && s < single.num_states; ++s)
    copy_state(one, one.in_o[0], one.in_lse[0], s, all.before, all.before.in_o[0],
               all.before.in_lse[0], all.before.first_state[row] + s);
  Outcome lone = run_tensors(std::move(one), sut);
  if (!lone.ok()) return lone.check;
  if (bits_follow_batch(p, sut)) return inside_budget(all, sut).also(inside_budget(lone, sut));
  for (int token = 0; token < lone.after.rows(); ++token)
    for (int h = 0; h < all.after.heads(); ++h) {
      CheckResult c = same_row_bits(all.after, row_of(p, {row, token}), h, lone.after, token, h,
                                    "request alone in its batch");
      if (!c.passed()) return c;
    }
  return is_attention(p) ? compare_pieces(all, sut) : CheckResult::pass();
}

} // namespace assay
