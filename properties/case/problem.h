// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Which parameter struct a case fills; same numbers as the ABI's assay_family.
enum class Family : uint8_t { kPaged, kCascade, kMergeState, kMergeStates };
/// Same numbers as the ABI's assay_dtype.
enum class Dtype : uint8_t { kFp16, kBf16, kFp32, kE4m3, kE5m2 };
/// What the KV cache holds.
enum class KvType : uint8_t { kSame, kE4m3, kE5m2 };
/// How a scale of an fp8 cache is given.
enum class ScaleLayout : uint8_t { kNone, kTensor, kHead };
enum class KvScaleRegime : uint8_t {
  kUnit,
  kRandom, ///< 0.5 .. 2
  kSpread  ///< 2^-8 .. 2^8 of it; v_scale of either sign
};
enum class Softcap : uint8_t { kNone, kOne, kThirty, kFifty };
enum class Alibi : uint8_t {
  kNone,
  kStandard, ///< 2^(-8 (h + 1) / heads)
  kRandom    ///< of either sign, up to 1
};
enum class Sinks : uint8_t { kNone, kNormal, kHuge, kSomeEmpty, kAllEmpty };
enum class LseBase : uint8_t { kNatural, kBase2 };
/// What a call adds to plain attention (case/features.h). Bits: properties say which they are
/// about, and without which their cases run.
enum Feature : unsigned {
  kTokens = 1, ///< several query tokens
  kWindow = 2,
  kAlibi = 4,
  kSink = 8,
  kSoftcap = 16,
  kFp8 = 32,
  kRagged = 64, ///< query tokens of unlike number
  kShard = 128, ///< keys of one rank of several
  kAllFeatures = 255
};
/// Order of the token and head axes inside a page.
enum class Layout : uint8_t { kNhd, kHnd };
/// Where logical pages lie in the pool. Never changes a logical value.
enum class Placement : uint8_t { kIdentity, kReversed, kShuffled, kExplicit };
/// Which logical pages are one page. Changes logical values: sharers read the same keys.
enum class Sharing : uint8_t {
  kNone,
  kPrefix,    ///< page j of every request is page j of request 0, for j < 2
  kDuplicate, ///< pages 2j and 2j + 1 of a request are one page
  kTree,      ///< the first 192 keys of all requests, 64 more of every second, 256 of every fourth
  kChain      ///< request r begins with the first 64 * 2^(r % 6) keys of request 0
};
enum class ScaleKind : uint8_t {
  kInvSqrt, ///< 1 / sqrt(head_dim)
  kOne,
  kDyadic, ///< fl(ln 2 / 8): base-2 logits are exactly 1/8 of the dot product
  kTiny    ///< 1e-3
};

/// How the values of one tensor are drawn. The order is the order of simplicity.
enum class Regime : uint8_t {
  kBinary, ///< 0 or 1
  kSmallInt,
  kNormal,
  kZero,
  // K: scores along one direction shared with Q
  kRising,
  kFalling,
  kPlateau,
  kDominant,
  kTies,
  kOffset,
  kHuge,  ///< |logit| up to 1e5
  kBelow, ///< all logits near -3000
  kSlope, ///< maxima that rise by less than one unit over many tiles
  kGaps,  ///< some keys 40 to 126 in base 2 above the others
  // V
  kOneHot,
  kConstant,
  kShifted, ///< normal + 100
  kSmall,   ///< normal * 1e-3
  kNearMax,
  kSubnormal,
  kWide, ///< normal * 2^-10 .. 2^10
  // Q beside K: scores of what a row's largest element dwarfs
  kPeaked, ///< every eighth is the same power of two, the others are 2^-16 to 2^-28 of it
  kOffPeak ///< normal, but 0 where queries of that kind are large
};

/// LSE values of merge inputs. An empty state has lse = -inf and a dead (poisoned) o.
enum class LseRegime : uint8_t {
  kEqual,
  kNormal,
  kSpread,
  kHuge,
  kSomeEmpty,
  kOneAlive,
  kAllEmpty
};

enum class InPlace : uint8_t { kNo, kOverA, kOverB };
enum class Poison : uint8_t { kNan, kInf, kHugeFinite, kRandomBits };
enum class BlockOrder : uint8_t { kAscending, kDescending, kSeeded };
enum class CopyTiming : uint8_t { kAtWait, kAtIssue, kSeeded };

struct Values {
  Regime regime = Regime::kBinary;
  int exponent = 0; ///< values are multiplied by 2^exponent (not the score regimes)
  uint32_t seed = 0;
  friend bool operator==(const Values &, const Values &) = default;
};

/// One level of a cascade: consecutive segments starting at request `first`.
struct CascadeLevel {
  int page_size = 1;
  int first = 0;             ///< first request the level covers
  std::vector<int> requests; ///< requests each segment serves, 0 allowed
  std::vector<int> lens;     ///< keys of each segment
  friend bool operator==(const CascadeLevel &, const CascadeLevel &) = default;
};

struct ScheduleSpec {
  BlockOrder order = BlockOrder::kAscending;
  CopyTiming copies = CopyTiming::kAtWait;
  uint32_t seed = 0;
  friend bool operator==(const ScheduleSpec &, const ScheduleSpec &) = default;
};

/// A case: everything a run depends on, as plain values. Fields a family does not use keep their
/// defaults, so that equality means the same case.
struct Problem {
  Family family = Family::kPaged;
  Dtype dtype = Dtype::kBf16;
  LseBase lse_base = LseBase::kNatural;
  bool has_lse = true; ///< false: the LSE output is null
  int batch = 1;       ///< requests; rows of a merge
  int num_kv_heads = 1;
  int group_size = 1; ///< query heads per kv head; merges use num_kv_heads * 1 heads
  int head_dim = 64;

  // Attention: cache.
  int page_size = 1;
  Layout k_layout = Layout::kNhd;
  Layout v_layout = Layout::kNhd;
  std::vector<int> seq_lens; ///< [batch], paged only
  Sharing sharing = Sharing::kNone;
  int spare_pages = 0;
  bool huge_pool = false; ///< page ids so large that byte and element offsets pass 2^32
  int table_pad = 0;      ///< dead page-table columns, and as many dead entries between rows
  Placement placement = Placement::kIdentity;
  uint32_t placement_seed = 0;
  std::vector<int> page_ids; ///< Placement::kExplicit: physical id of each logical page in order
  std::vector<CascadeLevel> levels;
  ScaleKind scale = ScaleKind::kInvSqrt;
  int num_splits = 0;

  // Strides beyond dense: q, o, k, v in units of 8 elements, lse in elements.
  int q_pad = 0, out_pad = 0, k_pad = 0, v_pad = 0, lse_pad = 0;

  Values q, k, v; ///< v is also the o of merge inputs

  // Merge.
  int num_states = 2; ///< leaves; merge_state itself reads the first two
  bool ragged = false;
  LseRegime lse_regime = LseRegime::kEqual;
  InPlace in_place = InPlace::kNo;

  Poison poison = Poison::kNan;
  ScheduleSpec schedule;

  // Features of paged attention.
  KvType kv = KvType::kSame;
  ScaleLayout k_scale = ScaleLayout::kNone, v_scale = ScaleLayout::kNone; ///< fp8 only
  KvScaleRegime kv_scales = KvScaleRegime::kUnit;
  int q_len = 1;
  std::vector<int>
      query_tokens; ///< [batch] ragged: of each request, up to q_len; empty: q_len each
  int window_left = -1;
  /// [batch] a shard: tokens on other ranks that stand behind the last one in the cache, as far as
  /// there can be so many; empty: the cache holds all tokens.
  std::vector<int> foreign_tokens;
  int dcp_world_size = 0, dcp_rank = 0, dcp_interleave = 0; ///< of a shard (assay.h)
  Softcap logits_soft_cap = Softcap::kNone;
  Alibi alibi = Alibi::kNone;
  Sinks sinks = Sinks::kNone;
  uint32_t feature_seed = 0; ///< of scales, random slopes, sinks

  // How a paged call is launched (assay.h). Neither may change a result by more than its bound.
  bool even_lengths = false; ///< hint of v1, given whatever the lengths are
  bool enable_pdl = false;   ///< behind a kernel that writes late_bytes() at the last moment

  // Where tensors lie. Never changes a value.
  uint32_t base_seed = 0; ///< 0: every buffer begins at a multiple of 256 bytes; else base_offset()
  /// The heads of q (merges: of the states), of o, of the LSEs are further apart than the rows.
  bool q_heads_outermost = false, out_heads_outermost = false, lse_heads_outermost = false;

  int num_qo_heads() const { return num_kv_heads * group_size; }
  friend bool operator==(const Problem &, const Problem &) = default;
};

/// Upper limits of a decoded case. Text cases are held to full_limits().
struct Limits {
  int batch, kv_heads, group, keys, head_dim, page_size, splits, states, levels;
  int slots;        ///< cache slots of a pool times kv heads; bounds memory and time
  int merge_values; ///< rows * states * heads * head_dim of a merge
  bool head_dim_256 = false;
};
Limits fuzz_limits();  ///< keys <= 128, head_dim 64
Limits check_limits(); ///< what `assay check` draws most of the time
Limits large_limits(); ///< up to 4,096 keys, head_dim 128
Limits wide_limits();  ///< more than any draw: what byte strings are tried under
Limits full_limits();  ///< what a .case may hold

template <class E>
struct EnumName {
  E value;
  const char *name;
  bool rare = false; ///< at the end of a list: drawn by one byte in 256
};
template <class E>
std::span<const EnumName<E>> enum_names();
template <class E>
std::string_view name_of(E value) {
  for (const auto &entry : enum_names<E>())
    if (entry.value == value) return entry.name;
  return "?";
}

/// Whether a field says where tensors lie, of those that codec version 3 did not have.
bool has_placed_tensors(const Problem &p);
/// How far behind a multiple of 256 bytes a buffer begins: a multiple of `least` bytes, with each
/// power of two from `least` to 256 the largest that divides its address equally often.
size_t base_offset(const Problem &p, std::string_view buffer, size_t least);

inline bool is_attention(const Problem &p) {
  return p.family == Family::kPaged || p.family == Family::kCascade;
}
inline bool is_merge(const Problem &p) { return !is_attention(p); }
float sm_scale(const Problem &p);
float softcap(const Problem &p); ///< 0: none
/// Keys that a query token sees at most, its own included; 0: all.
inline int window_keys(const Problem &p) { return p.window_left + 1; }

/// The hint of cases that do not say it: those written before codec version 3.
bool even_lengths_of_seeds(const Problem &p);

inline bool is_fp8(const Problem &p) { return p.kv != KvType::kSame; }
/// Element type of the cache.
inline Dtype kv_dtype(const Problem &p) {
  return p.kv == KvType::kSame ? p.dtype : p.kv == KvType::kE4m3 ? Dtype::kE4m3 : Dtype::kE5m2;
}
bool has_features(const Problem &p);
/// The case without them.
Problem without_features(Problem p);

/// One logical page of a pool: page `index` of table row `row`.
struct LogicalPage {
  int row, index;
  friend auto operator<=>(const LogicalPage &, const LogicalPage &) = default;
};
/// The logical page that page `index` of `row` is, after sharing.
LogicalPage canonical_page(Sharing sharing, int page_size, int row, int index);
/// Most keys from the first on that two requests of a paged case have in common, in whole pages of
/// which all query tokens see all. Of a shard none.
int shared_keys(const Problem &p);
/// Distinct logical pages of a paged case, in order of first use.
std::vector<LogicalPage> logical_pages(Sharing sharing, int page_size, std::span<const int> lens);

/// States of merge row `row`.
int states_of_row(const Problem &p, int row);

/// Empty when the case is well formed under `limits`, else one line naming field and limit.
std::string problem_error(const Problem &p, const Limits &limits);

} // namespace assay
