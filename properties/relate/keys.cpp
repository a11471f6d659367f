// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/keys.h"

namespace assay {

std::vector<VisibleRun> visible_runs(const Tensors &t, int row) {
  if (t.problem.family == Family::kPaged) {
    PositionRange seen = visible_range(t.problem, row);
    return {{0, query_row(t.problem, row).request, seen.begin, seen.end}};
  }
  std::vector<VisibleRun> out;
  for (const KeyRun &run : key_runs(t, row))
    out.push_back({run.cache, run.row, 0, run.len});
  return out;
}

int visible_count(const Problem &p, int row) {
  if (p.family == Family::kPaged) return visible_range(p, row).size();
  return keys_per_request(p)[row];
}

std::vector<KeyRun> key_runs(const Tensors &t, int request) {
  if (t.problem.family == Family::kPaged) return {{0, request, t.problem.seq_lens[request]}};
  std::vector<KeyRun> runs;
  for (size_t l = 0; l < t.problem.levels.size(); ++l) {
    const CascadeLevel &level = t.problem.levels[l];
    int first = level.first;
    for (size_t s = 0; s < level.requests.size(); first += level.requests[s++])
      if (request >= first && request < first + level.requests[s])
        runs.push_back({static_cast<int>(l), static_cast<int>(s), level.lens[s]});
  }
  return runs;
}

} // namespace assay
