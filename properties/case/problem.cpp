// SPDX-License-Identifier: Apache-2.0
#include "properties/case/problem.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "properties/case/hash.h"

namespace assay {

Limits fuzz_limits() {
  return {.batch = 3,
          .kv_heads = 2,
          .group = 8,
          .keys = 128,
          .head_dim = 64,
          .page_size = 32,
          .splits = 8,
          .states = 8,
          .levels = 3,
          .slots = 512,
          .merge_values = 1 << 13};
}
Limits check_limits() {
  return {.batch = 5,
          .kv_heads = 3,
          .group = 17,
          .keys = 288,
          .head_dim = 128,
          .page_size = 70,
          .splits = 12,
          .states = 12,
          .levels = 4,
          .slots = 1152,
          .merge_values = 1 << 14,
          .head_dim_256 = true};
}
Limits large_limits() {
  return {.batch = 8,
          .kv_heads = 4,
          .group = 32,
          .keys = 4096,
          .head_dim = 128,
          .page_size = 128,
          .splits = 128,
          .states = 100,
          .levels = 8,
          .slots = 8192,
          .merge_values = 1 << 17,
          .head_dim_256 = true};
}
Limits wide_limits() {
  return {.batch = 256,
          .kv_heads = 64,
          .group = 128,
          .keys = 1 << 18,
          .head_dim = 128,
          .page_size = 1024,
          .splits = 1024,
          .states = 1024,
          .levels = 8,
          .slots = 1 << 19,
          .merge_values = 1 << 22,
          .head_dim_256 = true};
}
Limits full_limits() {
  Limits limits = wide_limits();
  limits.batch = 1 << 17;
  limits.kv_heads = limits.group = 1 << 12;
  limits.head_dim = 256; // of merges 512
  return limits;
}

#define ASSAY_ENUM_NAMES(E, ...)                                                                   \
  template <>                                                                                      \
  std::span<const EnumName<E>> enum_names<E>() {                                                   \
    static constexpr EnumName<E> kNames[] = {__VA_ARGS__};                                         \
    return kNames;                                                                                 \
  }

ASSAY_ENUM_NAMES(Family, {Family::kPaged, "paged"}, {Family::kCascade, "cascade"},
                 {Family::kMergeState, "merge_state"}, {Family::kMergeStates, "merge_states"})
ASSAY_ENUM_NAMES(Dtype, {Dtype::kBf16, "bf16"}, {Dtype::kFp16, "fp16"}, {Dtype::kFp32, "fp32"})
ASSAY_ENUM_NAMES(KvType, {KvType::kSame, "same"}, {KvType::kE4m3, "e4m3"}, {KvType::kE5m2, "e5m2"})
ASSAY_ENUM_NAMES(ScaleLayout, {ScaleLayout::kNone, "none"}, {ScaleLayout::kTensor, "tensor"},
                 {ScaleLayout::kHead, "head"})
ASSAY_ENUM_NAMES(KvScaleRegime, {KvScaleRegime::kUnit, "unit"}, {KvScaleRegime::kRandom, "random"},
                 {KvScaleRegime::kSpread, "spread"})
ASSAY_ENUM_NAMES(Softcap, {Softcap::kNone, "none"}, {Softcap::kOne, "1"}, {Softcap::kThirty, "30"},
                 {Softcap::kFifty, "50"})
ASSAY_ENUM_NAMES(Alibi, {Alibi::kNone, "none"}, {Alibi::kStandard, "standard"},
                 {Alibi::kRandom, "random"})
ASSAY_ENUM_NAMES(Sinks, {Sinks::kNone, "none"}, {Sinks::kNormal, "normal"}, {Sinks::kHuge, "huge"},
                 {Sinks::kSomeEmpty, "some_empty"}, {Sinks::kAllEmpty, "all_empty"})
ASSAY_ENUM_NAMES(LseBase, {LseBase::kNatural, "e"}, {LseBase::kBase2, "2"})
ASSAY_ENUM_NAMES(Layout, {Layout::kNhd, "nhd"}, {Layout::kHnd, "hnd"})
ASSAY_ENUM_NAMES(Placement, {Placement::kIdentity, "identity"}, {Placement::kReversed, "reversed"},
                 {Placement::kShuffled, "shuffled"}, {Placement::kExplicit, "explicit"})
ASSAY_ENUM_NAMES(Sharing, {Sharing::kNone, "none"}, {Sharing::kPrefix, "prefix"},
                 {Sharing::kDuplicate, "duplicate"}, {Sharing::kTree, "tree"},
                 {Sharing::kChain, "chain"})
ASSAY_ENUM_NAMES(ScaleKind, {ScaleKind::kInvSqrt, "inv_sqrt"}, {ScaleKind::kOne, "one"},
                 {ScaleKind::kDyadic, "dyadic"}, {ScaleKind::kTiny, "tiny"})
ASSAY_ENUM_NAMES(Regime, {Regime::kBinary, "binary"}, {Regime::kSmallInt, "small_int"},
                 {Regime::kNormal, "normal"}, {Regime::kZero, "zero"}, {Regime::kRising, "rising"},
                 {Regime::kFalling, "falling"}, {Regime::kPlateau, "plateau"},
                 {Regime::kDominant, "dominant"}, {Regime::kTies, "ties"},
                 {Regime::kOffset, "offset"}, {Regime::kHuge, "huge"}, {Regime::kBelow, "below"},
                 {Regime::kSlope, "slope"}, {Regime::kGaps, "gaps"}, {Regime::kOneHot, "one_hot"},
                 {Regime::kConstant, "constant"}, {Regime::kShifted, "shifted"},
                 {Regime::kSmall, "small"}, {Regime::kNearMax, "near_max"},
                 {Regime::kSubnormal, "subnormal"}, {Regime::kWide, "wide"},
                 {Regime::kPeaked, "peaked"}, {Regime::kOffPeak, "off_peak"})
ASSAY_ENUM_NAMES(LseRegime, {LseRegime::kEqual, "equal"}, {LseRegime::kNormal, "normal"},
                 {LseRegime::kSpread, "spread"}, {LseRegime::kHuge, "huge"},
                 {LseRegime::kSomeEmpty, "some_empty"}, {LseRegime::kOneAlive, "one_alive"},
                 {LseRegime::kAllEmpty, "all_empty"})
ASSAY_ENUM_NAMES(InPlace, {InPlace::kNo, "no"}, {InPlace::kOverA, "over_a"},
                 {InPlace::kOverB, "over_b"})
ASSAY_ENUM_NAMES(Poison, {Poison::kNan, "nan"}, {Poison::kInf, "inf"},
                 {Poison::kHugeFinite, "huge_finite"}, {Poison::kRandomBits, "random_bits"})
ASSAY_ENUM_NAMES(BlockOrder, {BlockOrder::kAscending, "ascending"},
                 {BlockOrder::kDescending, "descending"}, {BlockOrder::kSeeded, "seeded"})
ASSAY_ENUM_NAMES(CopyTiming, {CopyTiming::kAtWait, "at_wait"}, {CopyTiming::kAtIssue, "at_issue"},
                 {CopyTiming::kSeeded, "seeded"})
#undef ASSAY_ENUM_NAMES

float sm_scale(const Problem &p) {
  switch (p.scale) {
  case ScaleKind::kInvSqrt:
    return static_cast<float>(1.0 / std::sqrt(double(p.head_dim)));
  case ScaleKind::kOne:
    return 1.0f;
  case ScaleKind::kDyadic:
    return static_cast<float>(0.69314718055994530942 / 8);
  case ScaleKind::kTiny:
    return 1e-3f;
  }
  return 1.0f;
}

bool even_lengths_of_seeds(const Problem &p) {
  return p.family == Family::kPaged && hash_values(p.q.seed, p.k.seed, p.placement_seed) % 2 == 1;
}

float softcap(const Problem &p) {
  switch (p.logits_soft_cap) {
  case Softcap::kNone:
    return 0.0f;
  case Softcap::kOne:
    return 1.0f;
  case Softcap::kThirty:
    return 30.0f;
  case Softcap::kFifty:
    return 50.0f;
  }
  return 0.0f;
}

bool has_placed_tensors(const Problem &p) {
  return p.base_seed != 0 || p.q_heads_outermost || p.out_heads_outermost || p.lse_heads_outermost;
}

size_t base_offset(const Problem &p, std::string_view buffer, size_t least) {
  constexpr size_t kMost = 256;
  if (p.base_seed == 0) return 0;
  uint64_t hash = p.base_seed;
  for (char c : buffer)
    hash = hash_values(hash, static_cast<unsigned char>(c));
  size_t choices = 1;
  while (least << (choices - 1) < kMost)
    ++choices;
  const size_t alignment = least << hash % choices;
  if (alignment == kMost) return 0;
  // An odd multiple, so that no larger power of two divides it.
  return alignment * (1 + 2 * (hash / choices % (kMost / alignment / 2)));
}

LogicalPage canonical_page(Sharing sharing, int page_size, int row, int index) {
  const int end = (index + 1) * page_size;
  switch (sharing) {
  case Sharing::kPrefix:
    return index < 2 ? LogicalPage{0, index} : LogicalPage{row, index};
  case Sharing::kDuplicate:
    return {row, index & ~1};
  case Sharing::kTree:
    return {end <= 192 ? 0 : end <= 256 ? row % 2 : end <= 512 ? row % 4 : row, index};
  case Sharing::kChain:
    return {end <= 64 << (row % 6) ? 0 : row, index};
  case Sharing::kNone:
    break;
  }
  return {row, index};
}

int shared_keys(const Problem &p) {
  int most = 0;
  if (!p.foreign_tokens.empty()) return most;
  for (int a = 0; a < p.batch; ++a)
    for (int b = 0; b < a; ++b) {
      const int keys = std::min(p.seq_lens[a], p.seq_lens[b]) - (p.q_len - 1);
      const int pages = std::max(0, keys) / p.page_size;
      int same = 0;
      while (same < pages && canonical_page(p.sharing, p.page_size, a, same) ==
                                 canonical_page(p.sharing, p.page_size, b, same))
        ++same;
      most = std::max(most, same * p.page_size);
    }
  return most;
}

std::vector<LogicalPage> logical_pages(Sharing sharing, int page_size, std::span<const int> lens) {
  std::vector<LogicalPage> pages;
  std::set<LogicalPage> seen;
  for (int row = 0; row < static_cast<int>(lens.size()); ++row) {
    int count = (lens[row] + page_size - 1) / page_size;
    for (int index = 0; index < count; ++index) {
      LogicalPage page = canonical_page(sharing, page_size, row, index);
      if (seen.insert(page).second) pages.push_back(page);
    }
  }
  return pages;
}

int states_of_row(const Problem &p, int row) {
  if (p.family == Family::kMergeState) return 2;
  if (!p.ragged) return p.num_states;
  // Row 0 keeps the full count, so that num_states is attained; others may be empty.
  if (row == 0) return p.num_states;
  return static_cast<int>(hash_values(p.v.seed, 0x51a7e5u, row) % (p.num_states + 1));
}

} // namespace assay
