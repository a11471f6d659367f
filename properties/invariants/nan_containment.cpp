// SPDX-License-Identifier: Apache-2.0
// Property: NaN and Inf in the live data of one (request, head) never change another's bits, nor
// those of a query token that does not see the key they are in.
// Catches: 0 * NaN in masked or padded tile rows, reductions across rows, shared-memory slots of a
// neighbour, -inf and NaN guards that look at the wrong row. Bitwise on the other rows.
#include <algorithm>
#include <limits>
#include <set>

#include "properties/call/materialise.h"
#include "properties/case/hash.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
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

/// A key where it lies in memory.
struct Slot {
  int cache, kv_head;
  int64_t at;
};

/// Whether a row has the key in the slot among those it sees or, with `hidden`, among those that
/// causal order or a window hide from it, too.
bool reaches(const Tensors &t, int row, const Slot &slot, bool hidden) {
  const CacheView &c = t.caches[slot.cache];
  const auto lies_in = [&](int cache, int table_row, int begin, int end) {
    for (int k = begin; cache == slot.cache && k < end; ++k)
      if (c.k_at(table_row, k, slot.kv_head, 0) == slot.at) return true;
    return false;
  };
  if (hidden)
    for (const KeyRun &run : key_runs(t, query_row(t.problem, row).request))
      if (lies_in(run.cache, run.row, 0, run.len)) return true;
  for (const VisibleRun &run : visible_runs(t, row))
    if (lies_in(run.cache, run.row, run.begin, run.end)) return true;
  return false;
}

/// Poisons one live key, its value or both, of a request with so many query tokens. The heads of
/// the group may change, in every query token of every request that the key's physical slot serves;
/// where the key alone is bad, in those that see it. (A value that a row does not see meets its
/// weight 0 in the tile that tokens share.)
RowSet poison_key(Tensors &t, const KeyRun &run, int kv_head, int tokens) {
  const Problem &p = t.problem;
  // Half of the time one that some query token does not see, and then the key alone.
  const bool unseen = tokens > 1 && pick(p, 0x70d, 2) == 0;
  const int token =
      unseen ? std::max(0, run.len - 1 - pick(p, 0x70e, tokens - 1)) : pick(p, 0x70c, run.len);
  uint64_t h = hash_values(p.k.seed, token);
  const bool key = unseen || (h & 2), value = !unseen && (!key || (h & 4));
  if (key) t.set_key(run.cache, run.row, token, kv_head, h >> 8 & 31, bad_bits(kv_dtype(p), h));
  if (value)
    t.set_val(run.cache, run.row, token, kv_head, h >> 16 & 31, bad_bits(kv_dtype(p), h >> 1));
  const Slot slot{run.cache, kv_head, t.caches[run.cache].k_at(run.row, token, kv_head, 0)};
  RowSet touched;
  for (int row = 0; row < query_rows(p); ++row)
    if (reaches(t, row, slot, value))
      for (int g = 0; g < p.group_size; ++g)
        touched.insert({row, kv_head * p.group_size + g});
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
    const int tokens = query_tokens(p, row);
    if (tokens == 0 && live.empty()) return CheckResult::discard("a request without rows and keys");
    if (live.empty() || (tokens > 0 && pick(p, 0x4a, 3) == 0))
      touched =
          poison_query(t, row_of(p, {row, pick(p, 0x70cu, tokens)}), pick(p, 0x4ead, t.heads()));
    else
      touched = poison_key(t, live[pick(p, 0x11, static_cast<int>(live.size()))],
                           pick(p, 0x4ead, p.num_kv_heads), tokens);
  }
  Outcome dirty = run_tensors(std::move(t), sut);
  if (!dirty.ok()) return dirty.check;
  if (sut.kernel().determinism == ASSAY_DETERMINISM_NONE) return inside_budget(dirty, sut);
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
