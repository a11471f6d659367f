// SPDX-License-Identifier: Apache-2.0
// Property: a group of query heads over one kv head gives what separate heads over copies of it
// give. Catches: head maps (division for remainder), rows of a packed tile mixed up, group sizes
// that do not fill a tile. Within bound, pairwise.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult gqa_equals_mha(const Problem &p, Sut &sut) {
  if (p.group_size == 1) return CheckResult::discard("group size 1");
  Outcome grouped = run_problem(p, sut);
  if (!grouped.ok()) return grouped.check;
  Problem wide = p;
  wide.num_kv_heads = p.num_qo_heads();
  wide.group_size = 1;
  Tensors t = materialise(wide);
  copy_features(t, grouped.before, 0); // slopes and sinks are per query head: they stay
  for (int h = 0; h < t.heads(); ++h) {
    int kv_head = h / p.group_size;
    if (p.k_scale == ScaleLayout::kHead)
      t.set_scalar(t.k_scale, h, grouped.before.key_scale(kv_head));
    if (p.v_scale == ScaleLayout::kHead)
      t.set_scalar(t.v_scale, h, grouped.before.value_scale(kv_head));
  }
  for (int r = 0; r < t.rows(); ++r)
    for (int h = 0; h < t.heads(); ++h)
      copy_query(t, r, h, grouped.before, r, h);
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int k = 0; k < t.caches[c].len[row]; ++k)
        for (int h = 0; h < t.heads(); ++h)
          copy_keys(t, static_cast<int>(c), row, k, h, grouped.before, static_cast<int>(c), row, k,
                    h / p.group_size);
  Outcome separate = run_tensors(std::move(t), sut);
  if (!separate.ok()) return separate.check;
  return all_related(grouped, separate, Relation{}, sut, "kv heads replicated per query head");
}

} // namespace assay
