// SPDX-License-Identifier: Apache-2.0
// Property: rotating the kv heads, with their query heads, rotates the output and changes no bit.
// Catches: swapped or fixed kv heads, head strides, LSE written to another head's slot. Bitwise;
// within bound, pairwise, where the kernel declares that a row's bits may follow other heads.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

void rotate_attention(Tensors &to, const Tensors &from) {
  const Problem &p = from.problem;
  int heads = p.num_kv_heads;
  copy_features(to, from, 1);
  for (int r = 0; r < from.rows(); ++r)
    for (int h = 0; h < from.heads(); ++h)
      copy_query(to, r, (h + p.group_size) % from.heads(), from, r, h);
  for (size_t c = 0; c < from.caches.size(); ++c)
    for (int row = 0; row < from.caches[c].rows; ++row)
      for (int token = 0; token < from.caches[c].len[row]; ++token)
        for (int h = 0; h < heads; ++h)
          copy_keys(to, static_cast<int>(c), row, token, (h + 1) % heads, from, static_cast<int>(c),
                    row, token, h);
}

void rotate_states(Tensors &to, const Tensors &from, int side, int states) {
  const Problem &p = from.problem;
  for (int s = 0; s < states; ++s)
    for (int h = 0; h < from.heads(); ++h) {
      int g = (h + 1) % from.heads();
      to.set_bits(to.in_lse[side], s, g, 0, from.bits(from.in_lse[side], s, h));
      for (int i = 0; i < p.head_dim; ++i)
        to.set_bits(to.in_o[side], s, g, i, from.bits(from.in_o[side], s, h, i));
    }
}

} // namespace

CheckResult head_permutation(const Problem &p, Sut &sut) {
  if (p.num_kv_heads < 2) return CheckResult::discard("one head");
  Outcome first = run_problem(p, sut);
  if (!first.ok()) return first.check;
  Tensors rotated = materialise(p);
  if (is_attention(p)) rotate_attention(rotated, first.before);
  if (p.family == Family::kMergeStates)
    rotate_states(rotated, first.before, 0, first.before.first_state.back());
  if (p.family == Family::kMergeState)
    for (int side : {0, 1})
      rotate_states(rotated, first.before, side, p.batch);
  Outcome second = run_tensors(std::move(rotated), sut);
  if (!second.ok()) return second.check;
  RunBounds of_first(first, sut), of_second(second, sut);
  for (int r = 0; r < first.before.rows(); ++r)
    for (int h = 0; h < first.before.heads(); ++h) {
      int g = (h + p.group_size) % first.before.heads();
      CheckResult c = bits_follow_batch(p, sut)
                          ? row_related(of_first, r, h, of_second, r, g, {}, "heads rotated")
                          : same_row_bits(first.after, r, h, second.after, r, g, "heads rotated");
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

} // namespace assay
