// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/one_request.h"

#include "properties/relate/keys.h"

namespace assay {

Problem one_request(const Problem &p, int row) {
  Problem one = p;
  erase_requests(one, row + 1, p.batch);
  erase_requests(one, 0, row);
  if (p.placement == Placement::kExplicit) {
    one.placement = Placement::kReversed;
    one.page_ids.clear();
  }
  for (CascadeLevel &level : one.levels) {
    int first = level.first, len = -1;
    for (size_t s = 0; s < level.requests.size(); first += level.requests[s++])
      if (row >= first && row < first + level.requests[s]) len = level.lens[s];
    level.first = 0;
    level.requests.assign(len < 0 ? 0 : 1, 1);
    level.lens.assign(len < 0 ? 0 : 1, len);
  }
  return one;
}

void copy_request(Tensors &some, int place, const Tensors &all, int row) {
  for (int token = 0; token < query_tokens(all.problem, row); ++token)
    for (int h = 0; h < all.heads(); ++h)
      copy_query(some, row_of(some.problem, {place, token}), h, all,
                 row_of(all.problem, {row, token}), h);
  auto from = key_runs(all, row), to = key_runs(some, place);
  for (size_t i = 0; i < to.size(); ++i)
    for (int token = 0; token < to[i].len; ++token)
      for (int h = 0; h < all.problem.num_kv_heads; ++h)
        copy_keys(some, to[i].cache, to[i].row, token, h, all, from[i].cache, from[i].row, token,
                  h);
}

} // namespace assay
