// SPDX-License-Identifier: Apache-2.0
#include "properties/case/features.h"

#include <algorithm>

#include "properties/case/query_rows.h"

namespace assay {
namespace {

void add(ClassNames &names, bool member, const char *name) {
  if (member) names.emplace_back(name);
}

bool has_keys(const Problem &p) {
  return std::any_of(p.seq_lens.begin(), p.seq_lens.end(), [](int n) { return n > 0; });
}

void remove_fp8(Problem &p) {
  p.kv = KvType::kSame;
  p.k_scale = p.v_scale = ScaleLayout::kNone;
  p.kv_scales = KvScaleRegime::kUnit;
}

void simplify_fp8(const Problem &p, Candidates &out) {
  offer(out, p, remove_fp8);
  offer(out, p, [](Problem &c) { c.k_scale = ScaleLayout::kNone; });
  offer(out, p, [](Problem &c) { c.v_scale = ScaleLayout::kNone; });
  offer(out, p, [](Problem &c) { c.kv_scales = KvScaleRegime::kUnit; });
}

void classify_fp8(const Problem &p, ClassNames &out) {
  add(out, is_fp8(p), "fp8");
  add(out, p.k_scale == ScaleLayout::kHead && p.num_kv_heads > 1, "scale_per_head");
}

void remove_softcap(Problem &p) { p.logits_soft_cap = Softcap::kNone; }

void classify_softcap(const Problem &p, ClassNames &out) {
  // Scores along one direction reach far beyond every cap; N(0, 1) data passes a cap of 1.
  const bool far = p.k.regime == Regime::kHuge || p.k.regime == Regime::kOffset ||
                   p.k.regime == Regime::kDominant || p.k.regime == Regime::kRising;
  const bool past_one = p.k.regime == Regime::kNormal && p.q.regime == Regime::kNormal &&
                        p.k.exponent + p.q.exponent >= 0 && p.scale != ScaleKind::kTiny;
  add(out,
      has_keys(p) && p.logits_soft_cap != Softcap::kNone && p.q.regime != Regime::kZero &&
          (far || (past_one && p.logits_soft_cap == Softcap::kOne)),
      "softcap_active");
}

void remove_alibi(Problem &p) { p.alibi = Alibi::kNone; }

void classify_alibi(const Problem &p, ClassNames &out) {
  add(out, has_keys(p) && p.alibi != Alibi::kNone, "alibi");
}

void remove_sinks(Problem &p) { p.sinks = Sinks::kNone; }

void classify_sinks(const Problem &p, ClassNames &out) {
  const bool keys = has_keys(p);
  add(out, keys && p.sinks == Sinks::kHuge, "sink_dominates"); // or vanishes
  add(out, keys && (p.sinks == Sinks::kAllEmpty || p.sinks == Sinks::kSomeEmpty), "sink_empty");
  add(out, keys && p.sinks == Sinks::kNormal, "sink");
}

void remove_tokens(Problem &p) { p = with_one_token(p); }

void simplify_tokens(const Problem &p, Candidates &out) {
  towards(out, p, p.q_len, 1, [](Problem &c, int v) {
    c.q_len = v;
    fit_requests(c);
  });
}

void classify_tokens(const Problem &p, ClassNames &out) {
  bool ahead = false;
  for (int row = 0; row < query_rows(p); ++row)
    ahead |= visible_range(p, row).size() == 0 && p.seq_lens[query_row(p, row).request] > 0;
  add(out, p.q_len > 1 && p.batch > 0, "q_len_gt_1");
  add(out, ahead, "seq_shorter_than_q_len");
}

void remove_ragged(Problem &p) { p.query_tokens.clear(); }

void simplify_ragged(const Problem &p, Candidates &out) {
  offer(out, p, remove_ragged);
  for (size_t r = 0; r < p.query_tokens.size(); ++r)
    towards(out, p, p.query_tokens[r], p.q_len, [&](Problem &c, int v) { c.query_tokens[r] = v; });
}

void classify_ragged(const Problem &p, ClassNames &out) {
  const auto any = [&](auto is) {
    return std::any_of(p.query_tokens.begin(), p.query_tokens.end(), is);
  };
  add(out, any([&](int n) { return n > 0 && n < p.q_len; }), "ragged_queries");
  add(out, any([](int n) { return n == 0; }), "request_without_queries");
}

/// The cache with the tokens of all ranks: a mistake that needs their positions needs no shard.
void fill_shard(Problem &p) {
  std::vector<int> lens;
  for (int request = 0; request < p.batch; ++request)
    lens.push_back(global_tokens(p, request));
  p.seq_lens = std::move(lens);
  forget_shard(p);
}

void simplify_shard(const Problem &p, Candidates &out) {
  offer(out, p, forget_shard);
  if (p.foreign_tokens.empty()) return;
  constexpr int kMostTokens = 4096; // more keys than that are nothing simpler
  int tokens = 0;
  for (int request = 0; request < p.batch && tokens <= kMostTokens; ++request)
    tokens += global_tokens(p, request);
  if (tokens <= kMostTokens) offer(out, p, fill_shard);
  towards(out, p, p.dcp_world_size, 2, [](Problem &c, int v) {
    c.dcp_world_size = v;
    c.dcp_rank = std::min(c.dcp_rank, v - 1);
  });
  field_towards(out, p, &Problem::dcp_rank, 0);
  field_towards(out, p, &Problem::dcp_interleave, 1);
  for (size_t r = 0; r < p.foreign_tokens.size(); ++r)
    towards(out, p, p.foreign_tokens[r], 0, [&](Problem &c, int v) { c.foreign_tokens[r] = v; });
}

void classify_shard(const Problem &p, ClassNames &out) {
  if (p.foreign_tokens.empty()) return;
  const bool positions = window_keys(p) > 0 || p.alibi != Alibi::kNone || p.q_len > 1;
  bool unseen = false;
  for (int row = 0; row < query_rows(p); ++row)
    unseen |= visible_range(p, row).size() == 0 && p.seq_lens[query_row(p, row).request] > 0;
  add(out, has_keys(p) && p.dcp_world_size > 1, "shard");
  add(out, has_keys(p) && p.dcp_world_size > 1 && positions, "shard_with_positions");
  add(out, unseen, "shard_without_visible_keys");
}

void remove_window(Problem &p) { p.window_left = -1; }

void simplify_window(const Problem &p, Candidates &out) {
  field_towards(out, p, &Problem::window_left, -1);
  if (p.window_left > 0) field_towards(out, p, &Problem::window_left, 0);
}

void classify_window(const Problem &p, ClassNames &out) {
  bool cuts = false, mid_tile = false;
  for (int row = 0; row < query_rows(p); ++row) {
    const PositionRange seen = visible_range(p, row);
    cuts |= seen.begin > 0;
    mid_tile |= seen.begin % 16 != 0;
  }
  add(out, cuts, "window_cuts");
  add(out, mid_tile, "window_mid_tile");
}

/// A feature whose only simpler case is the one without it.
template <void (*kRemove)(Problem &)>
void only_removed(const Problem &p, Candidates &out) {
  offer(out, p, kRemove);
}

} // namespace

std::span<const FeatureRow> features() {
  static const std::vector<FeatureRow> rows = {
      {kFp8, "fp8", is_fp8, remove_fp8, simplify_fp8, classify_fp8, {"fp8", "fp8_prefix_tree"}},
      {kTokens,
       "several tokens",
       [](const Problem &p) { return p.q_len > 1; },
       remove_tokens,
       simplify_tokens,
       classify_tokens,
       {"token_prefix_tree", "q_len_gt_1"}},
      {kRagged,
       "ragged queries",
       [](const Problem &p) { return !p.query_tokens.empty(); },
       remove_ragged,
       simplify_ragged,
       classify_ragged,
       {"ragged_queries", "request_without_queries"}},
      {kShard,
       "shard",
       [](const Problem &p) { return !p.foreign_tokens.empty(); },
       forget_shard,
       simplify_shard,
       classify_shard,
       {"shard", "shard_with_positions"}},
      {kWindow,
       "window",
       [](const Problem &p) { return window_keys(p) > 0; },
       remove_window,
       simplify_window,
       classify_window,
       {"window_cuts"}},
      {kSoftcap,
       "softcap",
       [](const Problem &p) { return p.logits_soft_cap != Softcap::kNone; },
       remove_softcap,
       only_removed<remove_softcap>,
       classify_softcap,
       {"softcap_active", "mapped_prefix_tree"}},
      {kAlibi,
       "ALiBi",
       [](const Problem &p) { return p.alibi != Alibi::kNone; },
       remove_alibi,
       only_removed<remove_alibi>,
       classify_alibi,
       {"alibi", "mapped_prefix_tree"}},
      {kSink,
       "sink",
       [](const Problem &p) { return p.sinks != Sinks::kNone; },
       remove_sinks,
       only_removed<remove_sinks>,
       classify_sinks,
       {"sink"}}};
  return rows;
}

Problem without_features(Problem p) {
  for (const FeatureRow &feature : features())
    feature.remove(p);
  p.feature_seed = 0;
  return p;
}

bool has_features(const Problem &p) { return p != without_features(p); }

} // namespace assay
