// SPDX-License-Identifier: Apache-2.0
// Property: NaN and Inf in the live data of one (request, head) never change another's bits.
// Catches: 0 * NaN in masked or padded tile rows, reductions across rows, shared-memory slots of a
// neighbour, -inf and NaN guards that look at the wrong row. Bitwise on the other rows.
#include <limits>
#include <set>

#include "properties/call/materialise.h"
#include "properties/case/hash.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

using RowSet = std::set<std::pair<int, int>>;

uint32_t bad_bits(Dtype dtype, uint64_t h) {
  Poison kind = h & 1 ? Poison::kNan : Poison::kInf;
  return poison_bits(kind, dtype, 0);
}

/// Poisons one query row; returns the rows that may change.
RowSet poison_query(Tensors &t, int row, int head) {
  for (int i = 0; i < t.problem.head_dim; i += 3)
    t.set_bits(t.q, row, head, i, bad_bits(t.problem.dtype, hash_values(i, t.problem.q.seed)));
  return {{row, head}};
}

/// Poisons one live key and its value. Every query token and head of the group, of every request
/// that the key's physical slot serves, may change: the tokens of a request share its keys.
RowSet poison_key(Tensors &t, const KeyRun &run, int kv_head) {
  const Problem &p = t.problem;
  int token = pick(p, 0x70c, run.len);
  uint64_t h = hash_values(p.k.seed, token);
  if (h & 2) t.set_key(run.cache, run.row, token, kv_head, h >> 8 & 31, bad_bits(kv_dtype(p), h));
  if (!(h & 2) || (h & 4))
    t.set_val(run.cache, run.row, token, kv_head, h >> 16 & 31, bad_bits(kv_dtype(p), h >> 1));
  const CacheView &c = t.caches[run.cache];
  int64_t slot = c.k_at(run.row, token, kv_head, 0);
  RowSet touched;
  for (int r = 0; r < p.batch; ++r)
    for (const KeyRun &other : key_runs(t, r)) {
      if (other.cache != run.cache) continue;
      for (int k = 0; k < other.len; ++k)
        if (c.k_at(other.row, k, kv_head, 0) == slot)
          for (int g = 0; g < p.q_len * p.group_size; ++g)
            touched.insert({r * p.q_len + g % p.q_len, kv_head * p.group_size + g / p.q_len});
    }
  return touched;
}

RowSet poison_state(Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  int side = p.family == Family::kMergeState ? pick(p, 0x51de, 2) : 0;
  int state = row;
  if (p.family == Family::kMergeStates) {
    int count = t.first_state[row + 1] - t.first_state[row];
    if (count == 0) return {};
    state = t.first_state[row] + pick(p, 0x57a7e, count);
  }
  uint64_t h = hash_values(p.v.seed, state);
  t.set_bits(t.in_o[side], state, head, static_cast<int>(h >> 8) & 7, bad_bits(p.dtype, h));
  uint32_t lse = poison_bits(h & 2 ? Poison::kNan : Poison::kInf, Dtype::kFp32, 0);
  if (h & 4) t.set_bits(t.in_lse[side], state, head, 0, lse);
  return {{row, head}};
}

} // namespace

CheckResult nan_containment(const Problem &p, Sut &sut) {
  if (query_rows(p) * p.num_qo_heads() < 2) return CheckResult::discard("one row");
  Outcome clean = run_problem(p, sut);
  if (!clean.ok()) return clean.check;
  Tensors t = materialise(p);
  int row = pick(p, 0xba7c, p.batch);
  RowSet touched;
  if (is_merge(p)) {
    touched = poison_state(t, row, pick(p, 0x4ead, t.heads()));
  } else {
    std::vector<KeyRun> live;
    for (const KeyRun &run : key_runs(t, row))
      if (run.len > 0) live.push_back(run);
    if (live.empty() || pick(p, 0x4a, 3) == 0)
      touched =
          poison_query(t, row * p.q_len + pick(p, 0x70cu, p.q_len), pick(p, 0x4ead, t.heads()));
    else
      touched = poison_key(t, live[pick(p, 0x11, static_cast<int>(live.size()))],
                           pick(p, 0x4ead, p.num_kv_heads));
  }
  Outcome dirty = run_tensors(std::move(t), sut);
  if (!dirty.ok()) return dirty.check;
  for (int r = 0; r < clean.after.rows(); ++r)
    for (int h = 0; h < clean.after.heads(); ++h) {
      if (touched.count({r, h})) continue;
      CheckResult c =
          same_row_bits(clean.after, r, h, dirty.after, r, h, "NaN in another row's data");
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

} // namespace assay
