// SPDX-License-Identifier: Apache-2.0
#include "properties/case/directed_paged.h"

#include <algorithm>
#include <array>

#include "properties/case/fields.h"

namespace assay {
namespace {

void fit_lens(Problem &p, int slots) {
  slots /= p.num_kv_heads;
  fields::cut_to_slots(p.seq_lens, p.page_size, slots);
}

/// Each of p.batch lengths from `least` to `most`, as far as they fit.
void draw_lens(Problem &p, int least, int most, int slots, Rng &rng) {
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = rng.between(least, most);
  fit_lens(p, slots);
}

/// A multiple of `unit`, or one key beside it.
int beside(int unit, int most, Rng &rng) {
  return std::max(0, unit * rng.between(1, most) + rng.between(-1, 1));
}

/// Lengths beside multiples of pages and tiles, odd and even; a window then often begins on a tile
/// for one query token and in front of or behind it for another, or for a request with all of them
/// and not for one with fewer.
void tie_lengths(Problem &p, const Limits &limits, Rng &rng) {
  static constexpr int kUnits[] = {16, 32, 64, 128, 256};
  const int unit = rng.upto(3) == 0 ? p.page_size : kUnits[rng.upto(4)];
  for (int &len : p.seq_lens)
    len = beside(unit, std::clamp(512 / unit, 1, 8), rng);
  fit_lens(p, 2 * limits.slots);
  if (p.seq_lens.empty() || rng.upto(1) == 0) return;
  p.q_len = rng.between(1, 8);
  const int len = p.seq_lens[rng.upto(static_cast<int>(p.seq_lens.size()) - 1)];
  const int begin = rng.between(0, len / 16) * 16;
  p.window_left = std::max(0, len - begin - 1 + rng.between(-p.q_len, p.q_len));
  if (rng.upto(2) == 0) return;
  p.query_tokens.resize(p.batch);
  for (int &tokens : p.query_tokens)
    tokens = rng.between(0, p.q_len);
}

/// Keys of a tile of a balanced plan: one warp tile for each of four warps.
int plan_tile(const Problem &p) {
  if (is_fp8(p)) return p.head_dim == 64 ? 256 : 128;
  return p.head_dim == 64 ? 128 : 64;
}

/// More requests than workers, or so long that no request has workers of its own: what one worker
/// begins the next goes on with. Often whole tiles, often as many as there are workers. Half of the
/// groups are large enough for weights that are rounded once, which follow the cuts.
void cross_workers(Problem &p, const Limits &limits, Rng &rng) {
  p.num_splits = 0;
  p.num_kv_heads = rng.between(1, 2);
  p.group_size = rng.between(1, 8);
  p.batch = rng.between(5, 10);
  p.seq_lens.resize(p.batch);
  const int most = rng.upto(2) == 0 ? 1 : 4;
  for (int &len : p.seq_lens)
    len = rng.upto(5) == 0 ? 0 : beside(plan_tile(p), most, rng);
  fit_lens(p, 4 * limits.slots);
}

/// More requests than a planner looks at in one round, few with keys.
void crowd(Problem &p, const Limits &limits, Rng &rng) {
  p.num_splits = rng.upto(3) == 0 ? 2 : 0;
  p.num_kv_heads = 1;
  p.group_size = rng.between(1, 2);
  p.head_dim = 64;
  p.q_len = std::min(p.q_len, 2);
  p.page_size = std::min(p.page_size, 8);
  p.batch = rng.between(250, 300);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = rng.upto(7) == 0 ? rng.between(1, 20) : 0;
  p.seq_lens.back() = rng.between(1, 140);
  fit_lens(p, 2 * limits.slots);
}

/// As many splits as lanes of a warp and one more, or twice or three times as many.
void split_often(Problem &p, const Limits &limits, Rng &rng) {
  p.num_splits = 32 * rng.between(1, 3) + rng.upto(1);
  p.num_kv_heads = 1;
  p.batch = rng.between(1, 2);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = beside(p.num_splits, 4, rng);
  fit_lens(p, 2 * limits.slots);
}

/// More kv heads, or more query heads of one, than any model has had for long.
void many_heads(Problem &p, const Limits &limits, Rng &rng) {
  p.batch = rng.between(1, 2);
  p.seq_lens.resize(p.batch);
  p.q_len = 1;
  const bool groups = rng.upto(1) == 0;
  p.num_kv_heads = groups ? rng.between(1, 2) : rng.between(65, 80);
  p.group_size = groups ? rng.between(65, 100) : 1;
  p.num_splits = std::min(p.num_splits, 2);
  for (int &len : p.seq_lens)
    len = rng.upto(12);
  p.page_size = std::min(p.page_size, 8);
  fit_lens(p, 2 * limits.slots);
}

/// With an fp8 cache queries are scaled, each row by itself: half of the cases show what its
/// largest element decides, one half of them by rows of unlike magnitudes, the other by what it
/// dwarfs.
void show_query_scales(Problem &p, Rng &rng) {
  const int kind = rng.upto(3);
  if (kind == 0) p.q.regime = Regime::kWide;
  if (kind != 2) return;
  p.q.regime = Regime::kPeaked;
  p.q.exponent = 0;
  p.k.regime = Regime::kOffPeak;
  p.k.exponent = 7;
  p.scale = ScaleKind::kOne;
}

/// Fewer head tiles than multiprocessors, where kernels give a row all the warps they can; of one
/// row tile or two.
void few_tiles(Problem &p, const Limits &limits, Rng &rng) {
  p.batch = rng.between(1, 2);
  p.num_kv_heads = rng.between(1, 2);
  p.group_size = rng.between(1, 16);
  p.num_splits = 0;
  p.kv = static_cast<KvType>(rng.upto(2));
  if (!is_fp8(p)) {
    p.k_scale = p.v_scale = ScaleLayout::kNone;
    p.kv_scales = KvScaleRegime::kUnit;
  }
  show_query_scales(p, rng);
  draw_lens(p, 0, 600, 2 * limits.slots, rng);
}

/// Two of six requests begin with the same 2,048 keys: a node of a prefix tree in many splits.
void share_2048_keys(Problem &p, const Limits &limits, Rng &rng) {
  p.sharing = Sharing::kChain;
  p.num_splits = rng.between(9, 16);
  p.num_kv_heads = 1;
  p.group_size = rng.between(1, 4);
  p.head_dim = 64;
  p.page_size = 64;
  p.batch = 6;
  p.seq_lens.assign(p.batch, 64);
  p.seq_lens.front() = rng.between(1300, 1600);
  p.seq_lens.back() = rng.between(1300, 1600);
  fit_lens(p, 16 * limits.slots);
}

/// Page tables that part behind more entries than a planner compares at a time.
void share_many_pages(Problem &p, const Limits &limits, Rng &rng) {
  p.sharing = Sharing::kTree;
  p.num_splits = rng.between(1, 4);
  p.num_kv_heads = 1;
  p.page_size = 1;
  p.batch = rng.between(2, 4);
  draw_lens(p, 260, 400, 8 * limits.slots, rng);
}

/// Cuts that ask for more partial states of shared keys than a workspace may hold: 768 query rows,
/// three splits of the nodes that each of them sees.
void share_among_many_rows(Problem &p, const Limits &limits, Rng &rng) {
  p.sharing = Sharing::kTree;
  p.num_splits = rng.between(2, 4);
  p.num_kv_heads = 1;
  p.group_size = 32;
  p.head_dim = 64;
  p.page_size = 64;
  p.batch = 24;
  draw_lens(p, 256, 270, 16 * limits.slots, rng);
}

/// Several query tokens, and what stands between the scores of shared keys and their weights. A
/// request may then end so that its first token just does not see the last key of a prefix, or just
/// does.
void add_features(Problem &p, uint32_t seed, const Limits &limits, Rng &rng) {
  constexpr int kMaxRows = 32; // of a kv head of a request: rows cost as much as cases
  p.logits_soft_cap = rng.upto(1) == 0 ? Softcap::kNone : static_cast<Softcap>(rng.between(1, 3));
  p.alibi = static_cast<Alibi>(rng.upto(2));
  p.sinks = rng.upto(1) == 0 ? Sinks::kNone : static_cast<Sinks>(rng.between(1, 4));
  if (is_fp8(p) && p.logits_soft_cap == Softcap::kNone) { // scales of unlike rows meet slopes
    if (p.alibi == Alibi::kNone) p.alibi = Alibi::kStandard;
    p.q.regime = Regime::kWide;
  }
  if (p.alibi == Alibi::kRandom || p.sinks != Sinks::kNone) p.feature_seed = seed;
  const int most = std::min(8, kMaxRows / p.group_size);
  if (most < 2 || rng.upto(2) == 0) return;
  p.q_len = rng.between(2, most);
  for (int &len : p.seq_lens)
    if (rng.upto(1) == 0) len = 64 * rng.between(1, 4) + rng.between(p.q_len - 3, p.q_len - 1);
  fit_lens(p, 16 * limits.slots);
}

/// Requests that begin with the same keys, and often end with the prefix. Also with more query rows
/// than a block of warpgroups has. Whether features may be added: not where sizes are the point.
bool share_few_prefixes(Problem &p, const Limits &limits, Rng &rng) {
  const uint32_t scale_seed = p.feature_seed;
  p = without_features(p);
  const bool fp8 = rng.upto(1) == 0;
  if (fp8) {
    p.kv = rng.upto(1) == 0 ? KvType::kE4m3 : KvType::kE5m2;
    p.k_scale = static_cast<ScaleLayout>(rng.upto(2));
    p.v_scale = static_cast<ScaleLayout>(rng.upto(2));
    p.kv_scales = static_cast<KvScaleRegime>(rng.upto(2));
    p.feature_seed = scale_seed;
    show_query_scales(p, rng);
  }
  switch (rng.upto(7)) {
  case 0:
    share_2048_keys(p, limits, rng);
    return true;
  case 1:
    share_many_pages(p, limits, rng);
    return false;
  case 2:
    share_among_many_rows(p, limits, rng);
    return false;
  default:
    break;
  }
  p.sharing = rng.upto(2) == 0 ? Sharing::kChain : Sharing::kTree;
  p.num_splits = rng.upto(3) == 0 ? 0 : rng.between(1, 4);
  p.num_kv_heads = rng.between(1, 2);
  p.page_size = std::array{1, 8, 16, 32, 48, 64}[rng.upto(5)];
  p.batch = rng.between(2, 9);
  if (rng.upto(3) == 0) {
    p.num_kv_heads = 1;
    p.group_size = 16;
    p.batch = 9;
  }
  p.seq_lens.resize(p.batch);
  // With an fp8 cache one split has more tiles than copies are in flight.
  const bool long_item = fp8 && rng.upto(1) == 0;
  if (long_item) p.num_splits = 1;
  for (int &len : p.seq_lens)
    len = rng.upto(5) == 0 ? 64 * rng.between(0, 5)
          : long_item      ? rng.between(400, 600)
                           : rng.between(64, 400);
  fit_lens(p, 8 * limits.slots);
  return true;
}

/// Two of three with features, but never a window.
void share_prefixes(Problem &p, const Limits &limits, Rng &rng) {
  const uint32_t seed = p.feature_seed;
  const bool may_have_features = share_few_prefixes(p, limits, rng);
  if (may_have_features && rng.upto(2) > 0) add_features(p, seed, limits, rng);
}

/// Scores that an ordinary key never has, over several tiles.
void far_scores(Problem &p, const Limits &limits, Rng &rng) {
  static constexpr Regime kFar[] = {Regime::kBelow, Regime::kSlope, Regime::kGaps, Regime::kOffset};
  if (p.q.regime == Regime::kZero) p.q.regime = Regime::kNormal;
  p.k.regime = kFar[rng.upto(3)];
  if (p.k.regime == Regime::kGaps) p.v.regime = Regime::kOneHot;
  for (int &len : p.seq_lens)
    len = rng.between(std::min(len, 400) / 2, 400);
  fit_lens(p, 2 * limits.slots);
}

} // namespace

void forget_pages(Problem &p) {
  if (p.placement != Placement::kExplicit) return;
  p.placement = Placement::kReversed;
  p.page_ids.clear();
}

void aim_at_shared_prefixes(Problem &p, const Limits &limits, Rng &rng) {
  forget_pages(p);
  share_prefixes(p, limits, rng);
}

void aim_paged(Problem &p, const Limits &limits, Rng &rng) {
  using Kind = void (*)(Problem &, const Limits &, Rng &);
  static constexpr Kind kKinds[] = {tie_lengths, cross_workers, split_often, far_scores,
                                    few_tiles,   cross_workers, many_heads,  share_prefixes};
  forget_pages(p);
  // Many blocks cost as much as many cases.
  if (rng.upto(19) == 0)
    crowd(p, limits, rng);
  else
    kKinds[rng.upto(static_cast<int>(std::size(kKinds)) - 1)](p, limits, rng);
}

} // namespace assay
