// SPDX-License-Identifier: Apache-2.0
// Property: attention over shared segments, level by level, equals attention over each request's
// keys in one private segment. Catches: segment offsets, a prefix attended twice or not at all,
// uncovered requests, empty segments, the merge across levels. Within bound, pairwise.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {

CheckResult cascade_equals_flat(const Problem &p, Sut &sut) {
  Outcome tree = run_problem(p, sut);
  if (!tree.ok()) return tree.check;
  Problem flat = p;
  CascadeLevel level;
  level.page_size = p.levels[0].page_size;
  level.requests.assign(p.batch, 1);
  level.lens = keys_per_request(p);
  flat.levels = {level};
  Tensors t = materialise(flat);
  for (int r = 0; r < p.batch; ++r) {
    int next = 0;
    for (const KeyRun &run : key_runs(tree.before, r))
      for (int k = 0; k < run.len; ++k, ++next)
        for (int h = 0; h < p.num_kv_heads; ++h)
          copy_keys(t, 0, r, next, h, tree.before, run.cache, run.row, k, h);
    for (int h = 0; h < t.heads(); ++h)
      copy_query(t, r, h, tree.before, r, h);
  }
  Outcome whole = run_tensors(std::move(t), sut);
  if (!whole.ok()) return whole.check;
  return all_related(tree, whole, Relation{}, sut, "the levels as one private segment");
}

} // namespace assay
