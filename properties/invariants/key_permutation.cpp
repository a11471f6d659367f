// SPDX-License-Identifier: Apache-2.0
// Property: the order of the keys never changes the result beyond rounding. Catches: rescaling that
// assumes rising maxima, keys tied to positions, K and V walked differently. Within bound,
// pairwise. Where positions count (several query tokens, a window, ALiBi) order does: cases run
// without.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult key_permutation(const Problem &p, Sut &sut) {
  Problem plain = with_one_token(p);
  plain.sharing = Sharing::kNone; // a slot with two positions cannot move to two places
  if (plain.placement == Placement::kExplicit) plain.placement = Placement::kReversed;
  plain.page_ids.clear();
  plain.window_left = -1;
  plain.alibi = Alibi::kNone;
  Outcome first = run_problem(plain, sut);
  if (!first.ok()) return first.check;
  Tensors t = materialise(plain);
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row) {
      int n = t.caches[c].len[row];
      int shift = pick(p, 0xce7, n) + 1;
      for (int k = 0; k < n; ++k)
        for (int h = 0; h < p.num_kv_heads; ++h)
          // Reversed and rotated: moves keys across tiles, pages and splits.
          copy_keys(t, static_cast<int>(c), row, (n - 1 - k + shift) % n, h, first.before,
                    static_cast<int>(c), row, k, h);
    }
  Outcome second = run_tensors(std::move(t), sut);
  if (!second.ok()) return second.check;
  return all_related(first, second, Relation{}, sut, "keys reordered");
}

} // namespace assay
