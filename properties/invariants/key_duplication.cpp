// SPDX-License-Identifier: Apache-2.0
// Property: giving every key twice leaves O alone and adds log 2 to LSE. Catches: LSE without the
// row sum, keys dropped or counted twice at tile, page and split edges, split averages without
// weights. Within bound, pairwise. Without several query tokens, window and ALiBi, where positions
// count, and without a sink, which does not double.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult key_duplication(const Problem &p, Sut &sut) {
  Problem plain = with_one_token(p);
  plain.sharing = Sharing::kNone;
  if (plain.placement == Placement::kExplicit) plain.placement = Placement::kReversed;
  plain.page_ids.clear();
  plain.window_left = -1;
  plain.alibi = Alibi::kNone;
  plain.sinks = Sinks::kNone;
  Outcome once = run_problem(plain, sut);
  if (!once.ok()) return once.check;
  Problem doubled = plain;
  for (int &n : doubled.seq_lens)
    n *= 2;
  for (CascadeLevel &level : doubled.levels)
    for (int &n : level.lens)
      n *= 2;
  Tensors t = materialise(doubled);
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row) {
      int n = t.caches[c].len[row] / 2;
      // Pairs next to each other, or the whole row again.
      bool pairs = pick(p, 0xd0b, 2) == 0;
      for (int k = 0; k < 2 * n; ++k)
        for (int h = 0; h < p.num_kv_heads; ++h)
          copy_keys(t, static_cast<int>(c), row, k, h, once.before, static_cast<int>(c), row,
                    pairs ? k / 2 : k % n, h);
    }
  Outcome twice = run_tensors(std::move(t), sut);
  if (!twice.ok()) return twice.check;
  double log2 = p.lse_base == LseBase::kBase2 ? 1.0 : 0.69314718055994530942;
  return all_related(once, twice, Relation{.lse_offset = log2, .lse_slack = 0x1p-52}, sut,
                     "every key twice");
}

} // namespace assay
