// SPDX-License-Identifier: Apache-2.0
// Property: with q = 0 and one-hot values (key j is 1 at dim j mod head_dim), O is the number of
// keys of that residue over the number of keys, and LSE is its log. Catches: any lost, extra or
// repeated key, and names its residue. Within bound around values known without the oracle.
#include <cmath>

#include "properties/invariants/bounds.h"
#include "properties/invariants/invariants.h"

namespace assay {

CheckResult zero_query_counts_keys(const Problem &p, Sut &sut) {
  Problem counting = p;
  counting.q.regime = Regime::kZero;
  counting.k.exponent = 0;
  if (p.k.regime > Regime::kZero) counting.k.regime = Regime::kNormal;
  Tensors t = materialise(counting);
  uint32_t zero = 0, one = to_bits(p.dtype, 1.0f);
  std::vector<std::vector<int>> count(p.batch, std::vector<int>(p.head_dim, 0));
  std::vector<int> keys(p.batch, 0);
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int k = 0; k < t.caches[c].len[row]; ++k)
        for (int h = 0; h < p.num_kv_heads; ++h)
          for (int i = 0; i < p.head_dim; ++i)
            t.set_val(static_cast<int>(c), row, k, h, i, k % p.head_dim == i ? one : zero);
  // A shared slot holds one token id; read back what each request really sees.
  for (int r = 0; r < p.batch; ++r)
    for (const KeyRun &run : key_runs(t, r))
      for (int k = 0; k < run.len; ++k, ++keys[r])
        for (int i = 0; i < p.head_dim; ++i)
          count[r][i] += t.val(run.cache, run.row, k, 0, i) == one;
  Outcome run = run_tensors(std::move(t), sut);
  if (!run.ok()) return run.check;
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < run.after.heads() && keys[r] > 0; ++h) {
      RowBound bound = row_bound(run, sut, r, h);
      if (!bound.claim) continue;
      for (int i = 0; i < p.head_dim; ++i) {
        CheckResult c = within(run.after.out_o(r, h, i), double(count[r][i]) / keys[r],
                               bound.o_radius[i], element_name(r, h, i), "counting keys");
        if (!c.passed()) return c;
      }
      if (!p.has_lse) continue;
      double lse = p.lse_base == LseBase::kBase2 ? std::log2(keys[r]) : std::log(keys[r]);
      CheckResult c = within(run.after.out_lse(r, h), lse, bound.lse_radius + lse * 0x1p-50,
                             element_name(r, h, -1), "counting keys");
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

} // namespace assay
