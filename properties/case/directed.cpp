// SPDX-License-Identifier: Apache-2.0
#include "properties/case/directed.h"

#include <algorithm>
#include <utility>

#include "properties/case/directed_paged.h"
#include "properties/case/fields.h"
#include "properties/case/query_rows.h"

namespace assay {
namespace {

void fit(Problem &p, int slots) {
  for (CascadeLevel &level : p.levels)
    fields::cut_to_slots(level.lens, level.page_size, slots);
}

/// A prefix of several tiles that at least 32 query rows share, often more than 64: kernels for
/// dense attention take it over. In as few splits as the kernel wants; the more heads the fewer.
void share_long_prefix(Problem &p, const Limits &limits, Rng &rng) {
  if (p.batch == 0) return;
  const int rows = rng.upto(1) == 0 ? 32 : 72, group = (rows + p.batch - 1) / p.batch;
  if (group > limits.group) return;
  p.group_size = std::max(p.group_size, group);
  if (rng.upto(1) == 0) p.num_kv_heads = limits.kv_heads;
  p.num_splits = 0;
  const int slots = 2 * limits.slots / p.num_kv_heads;
  // Other levels keep a quarter of the slots.
  p.levels[0] = {p.levels[0].page_size, 0, {p.batch}, {rng.between(slots / 4, slots * 3 / 4)}};
  fit(p, slots);
}

/// Many segments, often more than a warp looks at in one round, of one or two requests each, and a
/// level that leaves out requests in front and behind. Often one segment in front or behind serves
/// half of the requests, so that blocks are not where a proportion says.
void share_among_many(Problem &p, const Limits &limits, Rng &rng) {
  const bool steep = rng.upto(3) == 0;
  p.batch = steep ? rng.between(150, 220) : rng.between(14, 100);
  p.num_kv_heads = steep ? 1 : rng.between(1, 2);
  p.group_size = steep ? 4 : rng.between(1, 4);
  p.num_splits = 0;
  for (CascadeLevel &level : p.levels) {
    level.first = rng.upto(2);
    level.page_size = std::min(level.page_size, 8);
    level.requests.clear();
    level.lens.clear();
    const int widest = steep ? 1 : rng.between(1, 2), end = p.batch - rng.upto(2);
    const int crowd = (end - level.first) / 2,
              crowded = steep ? rng.between(1, 2) : rng.upto(2); // 1: in front, 2: behind
    for (int request = level.first; request < end;) {
      const bool here =
          crowded == 1 ? request == level.first : crowded == 2 && end - request <= crowd;
      level.requests.push_back(std::min(here ? crowd : rng.between(1, widest), end - request));
      request += level.requests.back();
      level.lens.push_back(rng.upto(20));
    }
  }
  fit(p, 2 * limits.slots);
}

/// More states than one thread, and often than one warp, adds up.
void merge_many(Problem &p, Rng &rng) {
  p.batch = rng.between(2, 3);
  p.num_kv_heads = rng.between(1, 2);
  p.num_states = rng.upto(1) == 0 ? rng.between(9, 16) : rng.between(17, 150);
  p.head_dim = 8 * rng.between(1, 16);
  if (rng.upto(3) == 0) { // more than a warp's lanes hold at eight each
    p.head_dim = 8 * rng.between(33, 64);
    p.num_states = rng.between(5, 40);
  }
  const int regime = rng.upto(3);
  if (regime == 0) p.lse_regime = LseRegime::kOneAlive;
  if (regime == 1) p.lse_regime = LseRegime::kHuge;
  p.ragged = rng.upto(1) == 0;
  if (rng.upto(1) == 0) return;
  // What shows every bit of a sum.
  p.dtype = Dtype::kFp32;
  p.lse_regime = LseRegime::kNormal;
  p.v.regime = Regime::kNormal;
}

/// More components than a warp's lanes hold at eight each.
void merge_wide(Problem &p, Rng &rng) {
  p.batch = rng.between(1, 3);
  p.num_kv_heads = rng.between(1, 2);
  p.head_dim = 8 * rng.between(33, 64);
  p.num_states = std::min(p.num_states, 4);
}

/// A shard whose keys end with a tile, though the first of several query tokens does not see the
/// last of them.
void end_shard_with_tile(Problem &p, const Limits &limits, Rng &rng) {
  constexpr int kTile = 64; // a multiple of the tiles of most warps
  forget_pages(p);
  p.batch = std::min(p.batch, 3);
  p.dcp_world_size = std::max(p.dcp_world_size, 2);
  p.q_len = rng.between(2, 6);
  if (rng.upto(1) == 0) p.num_splits = std::min(p.num_splits, 1);
  fit_requests(p);
  for (int request = 0; request < p.batch; ++request) {
    p.seq_lens[request] = kTile * rng.between(1, 4);
    p.foreign_tokens[request] = rng.upto(p.q_len - 2);
  }
  int slots = 2 * limits.slots / p.num_kv_heads;
  fields::cut_to_slots(p.seq_lens, p.page_size, slots);
}

void most_requests(Problem &p) {
  p.page_size = 4;
  p.batch = (1 << 16) + 4;
  p.seq_lens.assign(p.batch, 0);
  for (int request = 5; request < p.batch; request += 6'551)
    p.seq_lens[request] = 3;
  p.seq_lens.back() = 5;
}

/// Half of the requests share the last segment, so that no proportion says where the others are.
void most_segments(Problem &p) {
  constexpr int kSegments = 1'100;
  p.batch = 2 * kSegments;
  CascadeLevel level{4, 0, std::vector<int>(kSegments, 1), std::vector<int>(kSegments, 0)};
  level.requests.back() = p.batch - kSegments + 1;
  for (int segment = 0; segment < kSegments; segment += 7)
    level.lens[segment] = 1 + segment % 5;
  p.levels = {level};
}

} // namespace

Problem with_most_requests(Problem p) {
  if (is_merge(p)) {
    // A thread for each head and eight components is more than a block has.
    p.batch = 2;
    p.num_kv_heads = 200;
    p.head_dim = 128;
    p.num_states = std::min(p.num_states, 3);
    return p;
  }
  p = without_features(p);
  forget_pages(p);
  p.num_kv_heads = p.group_size = 1;
  p.dtype = Dtype::kBf16;
  p.head_dim = 64;
  p.num_splits = 0;
  p.family == Family::kPaged ? most_requests(p) : most_segments(p);
  return p;
}

Problem with_large_pages(Problem p) {
  constexpr int kPage = 528; // of hybrid models: no power of two, and no multiple of larger tiles
  if (is_merge(p) || p.batch == 0) return p;
  forget_pages(p);
  p.num_kv_heads = std::min(p.num_kv_heads, 2);
  p.batch = std::min(p.batch, 3);
  if (p.family == Family::kPaged) {
    p.page_size = kPage;
    p.seq_lens = {2 * kPage + 100, 0, kPage + 1};
    fit_requests(p);
    return p;
  }
  p.levels = {{kPage, 0, {p.batch}, {kPage + 100}}, {kPage, 0, {1}, {kPage}}};
  return p;
}

Problem with_longest_row(Problem p) {
  if (p.family != Family::kPaged) return p;
  p = without_features(p);
  forget_pages(p);
  p.batch = p.num_kv_heads = p.group_size = 1;
  p.head_dim = 256;
  p.page_size = 16;
  p.num_splits = 0;
  p.sharing = Sharing::kNone;
  // More scores than shared memory holds; K and V of more than 32 MB.
  p.seq_lens = {58'000};
  // Weights that do not leave all but a few keys out.
  p.q.regime = p.k.regime = p.v.regime = Regime::kNormal;
  p.q.exponent = p.k.exponent = 0;
  p.scale = ScaleKind::kInvSqrt;
  return p;
}

Problem with_most_heads(Problem p) {
  if (p.family != Family::kPaged) return p;
  p = without_features(p);
  forget_pages(p);
  p.batch = 1;
  p.num_kv_heads = 17;
  p.group_size = 1 << 12;
  p.head_dim = 64;
  p.num_splits = std::min(p.num_splits, 1);
  p.seq_lens = {1};
  fit_requests(p);
  return p;
}

Problem aimed(Problem p, const Limits &limits, uint64_t seed) {
  Rng rng(hash_values(seed, 'a'));
  if (p.family == Family::kMergeStates)
    merge_many(p, rng);
  else if (p.family == Family::kMergeState)
    merge_wide(p, rng);
  else if (p.family == Family::kPaged)
    aim_paged(p, limits, rng);
  else if (p.family == Family::kCascade)
    rng.upto(1) == 0 ? share_among_many(p, limits, rng) : share_long_prefix(p, limits, rng);
  fit_requests(p);
  return p;
}

Problem directed(Problem p, const Limits &limits, uint64_t seed) {
  const int one_in = p.family == Family::kMergeStates ? 3 : 7;
  if (Rng(seed).between(1, one_in) == 1) return aimed(std::move(p), limits, seed);
  Rng rng(hash_values(seed, 's'));
  if (p.family == Family::kPaged && rng.upto(24) == 0) aim_at_shared_prefixes(p, limits, rng);
  if (!p.foreign_tokens.empty() && rng.upto(3) == 0) end_shard_with_tile(p, limits, rng);
  fit_requests(p);
  return p;
}

} // namespace assay
