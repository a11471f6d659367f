// SPDX-License-Identifier: Apache-2.0
// The one list of a case's fields: their names, ranges and simplest values. The byte codec, the
// text form and validation are visitors over it, so they cannot disagree.
//
// A visitor offers:
//   integer(name, value, Range)              one bounded integer
//   integers(name, vector, count, Range)     `count` bounded integers
//   eighths(name, value, Range)              as integer, of value / 8
//   choice(name, enum, span of EnumName)     one of a list; the first is the simplest
//   flag(name, bool), word(name, uint32_t)
//   added_flag(name, bool, Added, before)    a flag that older bytes and texts have not: they mean
//                                            `before`
//   added_integers(name, vector, count, Range, Added)   a list that may be absent, as in these
//   added_gate(present, since)               as gate, of fields that bytes of codec versions before
//                                            `since` do not hold
//   fit(name, lens, page_size, slots)        lengths whose pages share `slots` cache slots
//   gate(present)                            whether the optional fields that follow are visited
//   page_ids(Problem, pages, pool)           `pages` distinct ids below `pool`
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "properties/case/problem.h"

namespace assay {

/// Closed range of an integer field. `anchors` are values worth hitting, together with their
/// neighbours; the byte codec weights towards them.
struct Range {
  int lo, hi;
  int simplest;
  std::span<const int> anchors = {};
};

/// Raised by a field that comes later.
inline constexpr uint8_t kCodecVersion = 6;

/// A field that came later: bytes of codec versions before `since` do not hold it, and one draw in
/// `one_in` sets it.
struct Added {
  int since, one_in;
};

namespace fields {

inline constexpr std::array<int, 10> kLengthAnchors = {0, 1, 16, 32, 64, 128, 192, 8, 144, 272};
inline constexpr std::array<int, 4> kPageAnchors = {1, 16, 64, 8};
inline constexpr std::array<int, 8> kGroupAnchors = {1, 2, 3, 5, 7, 8, 16, 4};
// An empty batch needs one case, not one in six; the balanced plan (0) deserves half of them.
inline constexpr std::array<int, 3> kBatchAnchors = {2, 3, 4};
inline constexpr std::array<int, 8> kSplitAnchors = {0, 0, 1, 0, 3, 0, 7, 32};
inline constexpr std::array<int, 5> kStateAnchors = {1, 2, 3, 7, 32};
inline constexpr std::array<int, 5> kHeadDim8Anchors = {1, 8, 16, 4, 2};

inline constexpr EnumName<Dtype> kAttentionDtypes[] = {{Dtype::kBf16, "bf16"},
                                                       {Dtype::kFp16, "fp16"}};
// One attention case in six has 256: it costs the most and differs the least.
inline constexpr EnumName<int> kHeadDims[] = {{64, "64"},   {128, "128"}, {64, "64"},
                                              {128, "128"}, {64, "64"},   {256, "256"}};
inline constexpr std::array<int, 5> kQueryAnchors = {2, 8, 4, 2, 3};
inline constexpr std::array<int, 8> kWindowAnchors = {0, 15, 63, 1, 32, 7, 127, 47};
inline constexpr std::array<int, 4> kRankAnchors = {2, 3, 2, 4};
inline constexpr std::array<int, 5> kInterleaveAnchors = {1, 16, 1, 64, 2};
// Each feature is off in about half of the cases that have any.
inline constexpr EnumName<KvType> kKvTypes[] = {{KvType::kSame, "same"},
                                                {KvType::kE4m3, "e4m3"},
                                                {KvType::kE5m2, "e5m2"},
                                                {KvType::kSame, "same"}};
inline constexpr EnumName<Softcap> kSoftcaps[] = {
    {Softcap::kNone, "none"}, {Softcap::kOne, "1"},     {Softcap::kThirty, "30"},
    {Softcap::kFifty, "50"},  {Softcap::kNone, "none"}, {Softcap::kNone, "none"}};
inline constexpr EnumName<Alibi> kAlibis[] = {{Alibi::kNone, "none"},
                                              {Alibi::kStandard, "standard"},
                                              {Alibi::kRandom, "random"},
                                              {Alibi::kNone, "none"}};
inline constexpr EnumName<Sinks> kSinkKinds[] = {
    {Sinks::kNone, "none"},          {Sinks::kNormal, "normal"},
    {Sinks::kHuge, "huge"},          {Sinks::kSomeEmpty, "some_empty"},
    {Sinks::kAllEmpty, "all_empty"}, {Sinks::kNone, "none"},
    {Sinks::kNone, "none"},          {Sinks::kNone, "none"}};
inline constexpr EnumName<Regime> kQueryRegimes[] = {
    {Regime::kBinary, "binary"}, {Regime::kSmallInt, "small_int"},
    {Regime::kNormal, "normal"}, {Regime::kNormal, "normal"},
    {Regime::kZero, "zero"},     {Regime::kSubnormal, "subnormal"},
    {Regime::kWide, "wide"},     {Regime::kPeaked, "peaked", true}};
inline constexpr EnumName<Regime> kKeyRegimes[] = {{Regime::kBinary, "binary"},
                                                   {Regime::kSmallInt, "small_int"},
                                                   {Regime::kNormal, "normal"},
                                                   {Regime::kZero, "zero"},
                                                   {Regime::kRising, "rising"},
                                                   {Regime::kFalling, "falling"},
                                                   {Regime::kPlateau, "plateau"},
                                                   {Regime::kDominant, "dominant"},
                                                   {Regime::kTies, "ties"},
                                                   {Regime::kOffset, "offset"},
                                                   {Regime::kHuge, "huge"},
                                                   {Regime::kNormal, "normal"},
                                                   {Regime::kSubnormal, "subnormal"},
                                                   {Regime::kBelow, "below"},
                                                   {Regime::kSlope, "slope"},
                                                   {Regime::kGaps, "gaps"},
                                                   {Regime::kOffPeak, "off_peak", true}};
inline constexpr EnumName<Regime> kValueRegimes[] = {
    {Regime::kBinary, "binary"},     {Regime::kSmallInt, "small_int"},
    {Regime::kNormal, "normal"},     {Regime::kOneHot, "one_hot"},
    {Regime::kConstant, "constant"}, {Regime::kShifted, "shifted"},
    {Regime::kSmall, "small"},       {Regime::kNearMax, "near_max"},
    {Regime::kNormal, "normal"},     {Regime::kSubnormal, "subnormal"}};

/// Requests times query heads, rows times heads: what they hold has to fit into memory.
inline constexpr int kMaxRows = 1 << 21, kMaxMergeRows = 1 << 17;

/// Explicit placements stay small enough to read and to shrink.
inline constexpr int kMaxExplicitPages = 64;

/// Cuts lengths so that all pages fit into `slots` cache slots. Idempotent.
inline void cut_to_slots(std::vector<int> &lens, int page_size, int &slots) {
  for (int &len : lens) {
    int most = slots / page_size * page_size;
    len = std::min(len, most);
    slots -= (len + page_size - 1) / page_size * page_size;
  }
}

template <class Io>
void visit_values(Io &io, const std::string &tensor, Values &v,
                  std::span<const EnumName<Regime>> regimes) {
  io.choice(tensor + ".regime", v.regime, regimes);
  io.integer(tensor + ".exponent", v.exponent, Range{-8, 8, 0});
  io.word(tensor + ".seed", v.seed);
}

template <class Io>
void visit_cache(Io &io, Problem &p) {
  io.choice("k_layout", p.k_layout, enum_names<Layout>());
  io.choice("v_layout", p.v_layout, enum_names<Layout>());
  io.integer("spare_pages", p.spare_pages, Range{0, 4, 0});
  io.flag("huge_pool", p.huge_pool);
  io.integer("table_pad", p.table_pad, Range{0, 3, 0});
  io.integer("k_pad", p.k_pad, Range{0, 3, 0});
  io.integer("v_pad", p.v_pad, Range{0, 3, 0});
}

template <class Io>
void visit_paged(Io &io, Problem &p, const Limits &limits) {
  io.integer("page_size", p.page_size, Range{1, limits.page_size, 1, kPageAnchors});
  io.integers("seq_lens", p.seq_lens, p.batch, Range{0, limits.keys, 1, kLengthAnchors});
  int slots = limits.slots / p.num_kv_heads;
  io.fit("seq_lens", p.seq_lens, p.page_size, slots);
  visit_cache(io, p);
  io.choice("sharing", p.sharing, enum_names<Sharing>());
  io.choice("placement", p.placement, enum_names<Placement>());
  if (p.placement == Placement::kShuffled) io.word("placement_seed", p.placement_seed);
  if (p.placement == Placement::kExplicit) {
    auto pages = logical_pages(p.sharing, p.page_size, p.seq_lens).size();
    io.page_ids(p, static_cast<int>(pages), static_cast<int>(pages) + p.spare_pages);
  }
}

template <class Io>
void visit_level(Io &io, CascadeLevel &level, const std::string &name, const Problem &p,
                 const Limits &limits, int &slots) {
  io.integer(name + "page_size", level.page_size, Range{1, limits.page_size, 1, kPageAnchors});
  io.integer(name + "first", level.first, Range{0, p.batch, 0});
  int segments = static_cast<int>(level.requests.size());
  io.integer(name + "segments", segments, Range{0, p.batch + 1, 1});
  level.requests.resize(segments);
  // Every segment may serve what the earlier ones left over.
  int left = p.batch - level.first;
  for (int s = 0; s < segments; ++s) {
    io.integer(name + "requests." + std::to_string(s), level.requests[s], Range{0, left, left});
    left = std::max(0, left - level.requests[s]);
  }
  io.integers(name + "lens", level.lens, segments, Range{0, limits.keys, 1, kLengthAnchors});
  io.fit(name + "lens", level.lens, level.page_size, slots);
}

template <class Io>
void visit_cascade(Io &io, Problem &p, const Limits &limits) {
  int levels = static_cast<int>(p.levels.size());
  io.integer("levels", levels, Range{1, limits.levels, 1});
  p.levels.resize(levels);
  int slots = limits.slots / p.num_kv_heads;
  for (int l = 0; l < levels; ++l)
    visit_level(io, p.levels[l], "level." + std::to_string(l) + ".", p, limits, slots);
  visit_cache(io, p);
  io.choice("placement", p.placement, enum_names<Placement>().first(3));
  if (p.placement == Placement::kShuffled) io.word("placement_seed", p.placement_seed);
}

template <class Io>
void visit_attention(Io &io, Problem &p, const Limits &limits) {
  io.choice("dtype", p.dtype, std::span<const EnumName<Dtype>>(kAttentionDtypes));
  io.integer("batch", p.batch, Range{0, limits.batch, 1, kBatchAnchors});
  const int heads = kMaxRows / std::max(1, p.batch);
  io.integer("num_kv_heads", p.num_kv_heads, Range{1, std::min(limits.kv_heads, heads), 1});
  io.integer("group_size", p.group_size,
             Range{1, std::min(limits.group, heads / p.num_kv_heads), 1, kGroupAnchors});
  int dims = limits.head_dim_256 ? 6 : limits.head_dim >= 128 ? 2 : 1;
  io.choice("head_dim", p.head_dim, std::span(kHeadDims).first(dims));
  p.family == Family::kPaged ? visit_paged(io, p, limits) : visit_cascade(io, p, limits);
  io.choice("scale", p.scale, enum_names<ScaleKind>());
  io.integer("num_splits", p.num_splits, Range{0, limits.splits, 0, kSplitAnchors});
  io.integer("q_pad", p.q_pad, Range{0, 3, 0});
  visit_values(io, "q", p.q, kQueryRegimes);
  visit_values(io, "k", p.k, kKeyRegimes);
}

template <class Io>
void visit_features(Io &io, Problem &p, const Limits &limits) {
  if (!io.gate(has_features(p))) return;
  io.choice("kv_dtype", p.kv, std::span<const EnumName<KvType>>(kKvTypes));
  if (is_fp8(p)) {
    io.choice("k_scale", p.k_scale, enum_names<ScaleLayout>());
    io.choice("v_scale", p.v_scale, enum_names<ScaleLayout>());
    io.choice("kv_scales", p.kv_scales, enum_names<KvScaleRegime>());
  }
  bool several = p.q_len > 1, windowed = p.window_left >= 0;
  if (io.gate(several)) io.integer("q_len", p.q_len, Range{1, 8, 1, kQueryAnchors});
  if (io.gate(windowed))
    io.integer("window_left", p.window_left, Range{-1, limits.keys - 1, -1, kWindowAnchors});
  io.choice("logits_soft_cap", p.logits_soft_cap, std::span<const EnumName<Softcap>>(kSoftcaps));
  io.choice("alibi", p.alibi, std::span<const EnumName<Alibi>>(kAlibis));
  io.choice("sinks", p.sinks, std::span<const EnumName<Sinks>>(kSinkKinds));
  io.word("feature_seed", p.feature_seed);
}

template <class Io>
void visit_launch(Io &io, Problem &p) {
  io.added_flag("even_lengths", p.even_lengths, Added{3, 2}, even_lengths_of_seeds(p));
  io.added_flag("enable_pdl", p.enable_pdl, Added{3, 8}, false);
  io.added_integers("query_tokens", p.query_tokens, p.batch, Range{0, p.q_len, p.q_len},
                    Added{4, p.q_len > 1 ? 2 : 24});
}

/// Requests end anywhere between two tokens of the shard: the rest is cut (case/query_rows.h).
template <class Io>
void visit_shard(Io &io, Problem &p) {
  constexpr int kMostRanks = 8, kMostTokens = 64;
  io.added_integers("foreign_tokens", p.foreign_tokens, p.batch,
                    Range{0, kMostRanks * kMostTokens, 0}, Added{6, 6});
  if (p.foreign_tokens.empty()) {
    p.dcp_world_size = p.dcp_rank = p.dcp_interleave = 0;
    return;
  }
  io.integer("dcp_world_size", p.dcp_world_size, Range{1, kMostRanks, 2, kRankAnchors});
  io.integer("dcp_rank", p.dcp_rank, Range{0, p.dcp_world_size - 1, 0});
  io.integer("dcp_interleave", p.dcp_interleave, Range{1, kMostTokens, 1, kInterleaveAnchors});
}

template <class Io>
void visit_placed_tensors(Io &io, Problem &p) {
  if (!io.added_gate(has_placed_tensors(p), 5)) return;
  io.word("base_seed", p.base_seed);
  io.added_flag("q_heads_outermost", p.q_heads_outermost, Added{5, 4}, false);
  io.added_flag("out_heads_outermost", p.out_heads_outermost, Added{5, 4}, false);
  io.added_flag("lse_heads_outermost", p.lse_heads_outermost, Added{5, 4}, false);
}

template <class Io>
void visit_merge(Io &io, Problem &p, const Limits &limits) {
  io.choice("dtype", p.dtype, enum_names<Dtype>());
  io.integer("rows", p.batch, Range{0, limits.batch, 1, kBatchAnchors});
  const int heads = std::max(64, kMaxMergeRows / std::max(1, p.batch));
  io.integer("heads", p.num_kv_heads, Range{1, std::min(limits.kv_heads, heads), 1});
  io.eighths("head_dim", p.head_dim,
             Range{1, std::min(64, limits.head_dim / 4), 1, kHeadDim8Anchors});
  bool fixed_pair = p.family == Family::kMergeState;
  int per_state = std::max(1, p.batch) * p.num_kv_heads * p.head_dim;
  int most = std::clamp(limits.merge_values / per_state, 2, limits.states);
  io.integer("num_states", p.num_states, Range{fixed_pair ? 2 : 0, most, 2, kStateAnchors});
  if (fixed_pair)
    io.choice("in_place", p.in_place, enum_names<InPlace>());
  else
    io.flag("ragged", p.ragged);
  io.choice("lse.regime", p.lse_regime, enum_names<LseRegime>());
}

} // namespace fields

/// Calls `io` for every field that `p` has under `limits`, in order; later ranges depend on earlier
/// values, so a decoder assigns as it goes.
template <class Io>
void visit_fields(Io &io, Problem &p, const Limits &limits) {
  io.choice("family", p.family, enum_names<Family>());
  io.choice("lse_base", p.lse_base, enum_names<LseBase>());
  bool no_lse = !p.has_lse;
  io.flag("no_lse", no_lse);
  p.has_lse = !no_lse;
  is_attention(p) ? fields::visit_attention(io, p, limits) : fields::visit_merge(io, p, limits);
  io.integer("out_pad", p.out_pad, Range{0, 3, 0});
  io.integer("lse_pad", p.lse_pad, Range{0, 3, 0});
  fields::visit_values(io, is_attention(p) ? "v" : "o", p.v, fields::kValueRegimes);
  io.choice("poison", p.poison, enum_names<Poison>());
  io.choice("schedule.order", p.schedule.order, enum_names<BlockOrder>());
  io.choice("schedule.copies", p.schedule.copies, enum_names<CopyTiming>());
  io.word("schedule.seed", p.schedule.seed);
  if (p.family == Family::kPaged) {
    fields::visit_features(io, p, limits);
    fields::visit_launch(io, p);
  }
  fields::visit_placed_tensors(io, p);
  if (p.family == Family::kPaged) fields::visit_shard(io, p);
}

} // namespace assay
