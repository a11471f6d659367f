// SPDX-License-Identifier: Apache-2.0
#include "properties/case/shrink.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "properties/case/device_limits.h"
#include "properties/case/query_rows.h"
#include "properties/case/simplify.h"

namespace assay {
namespace {

/// One request and one kv head with `keys` keys, in the plainest memory.
Problem plain_attention(const Problem &p, int keys, int splits, int group) {
  Problem c = p;
  c.batch = c.num_kv_heads = 1;
  c.group_size = group;
  c.num_splits = splits;
  c.sharing = Sharing::kNone;
  c.page_size = 1;
  drop_page_ids(c);
  fit_requests(c);
  if (p.family == Family::kPaged)
    c.seq_lens = {keys};
  else if (p.levels.size() > 1 && keys > 1)
    c.levels = {{1, 0, {1}, {1}}, {1, 0, {1}, {keys - 1}}};
  else
    c.levels = {{1, 0, {1}, {keys}}};
  return c;
}

/// Several fields at once, for failures that no single field can leave: a cut of the rows that
/// follows batch and heads, or values that only this length draws in the wrong order.
Candidates jumps(const Problem &p) {
  Candidates out;
  if (!is_attention(p)) return out;
  const long limit = complexity(p);
  auto offer = [&](Problem c) {
    if (complexity(c) < limit) out.push_back(std::move(c));
  };
  // Two levels of a key each have two partials, as two splits have that are tiles long.
  if (p.family == Family::kCascade && p.levels.size() == 1 && p.num_splits != 1) {
    Problem c = plain_attention(p, 1, 1, 1);
    c.levels.push_back(c.levels[0]);
    offer(c);
  }
  const Values normal{Regime::kNormal, 0, 1}, rising{Regime::kRising, 0, 1};
  // One more than the keys of one, two, four and eight warps' tiles.
  for (int group = 1; group <= std::min(p.group_size, 2); ++group)
    for (int keys : {1, 2, 17, 33, 65, 129})
      for (int splits : {0, 1, 2})
        for (int values = 0; values < 3; ++values) {
          Problem c = plain_attention(p, keys, splits, group);
          if (values > 0) c.q = normal;
          if (values > 0) c.k = values == 1 ? normal : rising;
          offer(std::move(c));
        }
  // The order of the scores is the draw's: a key past a tile is the largest of 17 once in 17 draws.
  for (uint32_t seed = 1; seed <= 64; ++seed)
    for (int keys : {17, 33, 65, 129}) {
      Problem c = plain_attention(p, keys, p.num_splits, 1);
      c.q.seed = c.k.seed = seed;
      offer(std::move(c));
    }
  const bool few = p.batch > 1 && p.batch <= kManyRequests;
  for (int row = 0; few && row < p.batch; ++row)
    for (int splits : {1, 2}) {
      Problem c = only_request(p, row);
      c.num_splits = splits;
      offer(std::move(c));
    }
  return out;
}

} // namespace

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

long complexity(const Problem &p) {
  long c = p.batch * 64 + p.num_kv_heads * 16 + p.group_size * 16 + p.head_dim + p.num_splits +
           p.num_states * 4 + p.page_size + p.spare_pages + p.table_pad + p.q_pad + p.out_pad +
           p.k_pad + p.v_pad + p.lse_pad + 8 * p.q_len + window_keys(p) +
           (has_features(p) ? 32 : 0);
  // A shard counts the tokens that all ranks may have: the case may get them without it.
  const bool shard = !p.foreign_tokens.empty();
  for (int n : p.seq_lens)
    c += shard ? (n + 2L * p.dcp_interleave) * p.dcp_world_size : n;
  for (const CascadeLevel &level : p.levels) {
    c += 64 + level.first + level.page_size;
    for (int n : level.lens)
      c += n + 8;
  }
  for (const Values *v : {&p.q, &p.k, &p.v})
    c += static_cast<int>(v->regime) + std::abs(v->exponent) + (v->seed != 0);
  return c;
}

std::vector<std::vector<Problem>> shrink_candidates(const Problem &p) {
  std::vector<Candidates> out = simpler_by_field(p);
  out.push_back(jumps(p));
  return out;
}

Problem shrink(const Problem &p, const std::function<bool(const Problem &)> &fails,
               const ShrinkBudget &budget, ShrinkStats *stats) {
  ShrinkStats local;
  ShrinkStats &s = stats != nullptr ? *stats : local;
  const auto now = [&] { return budget.clock ? budget.clock() : processor_seconds(); };
  const double start = now();
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kPatience = 10; // what waits uses no processor, and has to end as well
  auto spent = [&] {
    bool stopped = budget.stop != nullptr && budget.stop->load(std::memory_order_relaxed);
    return stopped || s.checks >= budget.checks || now() - start > budget.seconds ||
           std::chrono::steady_clock::now() - begin >
               std::chrono::duration<double>(kPatience * budget.seconds);
  };
  Problem best = p;
  if (spent()) {
    s.exhausted = true;
    return best;
  }
  const Limits limits = is_big(p) ? device_limits(p.family) : full_limits();
  size_t fields = shrink_candidates(p).size();
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t f = 0; f < fields; ++f) {
      for (bool again = true; again;) {
        again = false;
        auto candidates = shrink_candidates(best);
        for (Problem &candidate : candidates[f]) {
          if (!problem_error(candidate, limits).empty()) continue;
          if (spent()) {
            s.exhausted = true;
            return best;
          }
          ++s.checks;
          if (!fails(candidate)) continue;
          best = std::move(candidate);
          ++s.accepted;
          progress = again = true;
          break;
        }
      }
      s.tried |= 1u << f;
    }
  }
  return best;
}

} // namespace assay
