// SPDX-License-Identifier: Apache-2.0
#include "properties/case/serving.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "properties/case/directed_paged.h"
#include "properties/case/query_rows.h"

namespace assay {
namespace {

constexpr int kBatches = 5; ///< kinds of many_requests()

/// One kv head of ordinary values: what is large must not be expensive.
void make_cheap(Problem &p, Rng &rng) {
  p = without_features(std::move(p));
  forget_pages(p);
  p.num_kv_heads = 1;
  p.group_size = rng.between(1, 2);
  p.head_dim = 64;
  p.dtype = Dtype::kBf16;
  p.sharing = Sharing::kNone;
  p.huge_pool = false;
  if (p.family == Family::kPaged) p.page_size = 16;
  // All keys have weight, no two the same: a lost or a wrong one shows in the LSE.
  p.q.regime = p.k.regime = p.v.regime = Regime::kNormal;
  p.q.exponent = p.k.exponent = p.v.exponent = 0;
  p.scale = ScaleKind::kInvSqrt;
}

/// 16 query heads in all, as many of them of one kv head as models have.
void give_16_heads(Problem &p, Rng &rng) {
  p.num_kv_heads = 1 << rng.upto(3);
  p.group_size = 16 / p.num_kv_heads;
}

/// Kind 0 to 4: 16 to 256 requests, or one more or less.
int batch_of(int kind, Rng &rng) { return (16 << kind) + rng.between(-1, 1); }

/// Keys of a row of a batch: several tiles, the fewer the more rows there are.
int keys_of_row(int batch, Rng &rng) {
  constexpr int kKeys = 12'000; // of the whole batch, about
  return rng.upto(9) == 0 ? rng.upto(1) : rng.between(33, std::clamp(kKeys / batch, 70, 512));
}

/// Every other kind leaves the number of splits to the kernel.
void many_requests(Problem &p, int kind, Rng &rng) {
  p.batch = batch_of(kind, rng);
  p.num_kv_heads = 1;
  p.group_size = 16;
  p.num_splits = kind % 2 * rng.between(2, 8);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = keys_of_row(p.batch, rng);
  p.seq_lens.back() = rng.between(33, 100);
}

/// Heads as models have them.
void many_heads_of_models(Problem &p, int kind, Rng &rng) {
  static constexpr struct { int kv_heads, group; } kHeads[] = {{8, 8}, {32, 1}, {5, 13}, {2, 48}};
  p.num_kv_heads = kHeads[kind].kv_heads;
  p.group_size = kHeads[kind].group;
  p.head_dim = kind % 2 == 0 ? 128 : 64;
  p.batch = 3;
  p.num_splits = kind % 2 * rng.between(2, 8);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = rng.between(1, 140);
}

/// What shows the last bits of every sum: partial results of many elements, split as the kernel
/// wants.
void show_bits(Problem &p, Rng &rng) {
  give_16_heads(p, rng);
  p.head_dim = rng.upto(1) == 0 ? 64 : 128;
  p.dtype = Dtype::kFp16;
  p.num_splits = 0;
}

/// So many partial results that the order in which they are added shows in some element.
void split_often_with_many_bits(Problem &p, int kind, Rng &rng) {
  show_bits(p, rng);
  p.num_kv_heads = 2;
  p.group_size = 16;
  p.head_dim = 128;
  p.batch = 1;
  p.num_splits = 40 + 60 * kind + rng.upto(20);
  p.seq_lens = {700 + rng.upto(300)};
}

/// Batches beside powers of two whose rows a kernel may cut by their number. All rows of small ones
/// are several chunks, of large ones every sixteenth: cases cost alike.
void batch_of_split_rows(Problem &p, int kind, Rng &rng) {
  constexpr int kKeys = 4'500; // of the whole batch, about
  show_bits(p, rng);
  p.batch = batch_of(kind, rng);
  p.seq_lens.resize(p.batch);
  const int most = std::clamp(2 * kKeys / p.batch, 20, 500);
  for (int request = 0; request < p.batch; ++request)
    p.seq_lens[request] = request % 16 == 3 ? rng.between(130, 450) : rng.between(most / 4, most);
}

/// A window, and rows of unlike lengths below and above it.
void batch_of_windows(Problem &p, Rng &rng) {
  show_bits(p, rng);
  p.window_left = rng.between(300, 600) - 1;
  p.batch = rng.between(6, 8);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = rng.between(50, 3 * window_keys(p));
}

/// Rows of a chunk or two beside a long one, which must not decide how they are cut.
void short_rows_beside_long(Problem &p, Rng &rng) {
  show_bits(p, rng);
  p.batch = rng.between(4, 7);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = rng.between(130, 300);
  p.seq_lens[rng.upto(p.batch - 1)] = rng.between(3'900, 4'300);
}

/// Several query tokens of unlike number.
void batch_of_ragged_queries(Problem &p, Rng &rng) {
  show_bits(p, rng);
  p.q_len = rng.between(2, 8);
  p.batch = rng.between(9, 11);
  p.seq_lens.resize(p.batch);
  p.query_tokens.resize(p.batch);
  for (int request = 0; request < p.batch; ++request) {
    p.seq_lens[request] = rng.between(100, 250);
    p.query_tokens[request] = rng.between(0, p.q_len);
  }
}

void long_row(Problem &p, int kind, Rng &rng) {
  static constexpr int kKeys[] = {4'096, 8'192, 16'384};
  p.group_size = 1;
  p.batch = 1;
  p.seq_lens = {kKeys[kind] + rng.between(1, 100)};
  p.num_splits = rng.upto(1) * rng.between(2, 8);
}

/// Rows that end beside a tile, and just behind the window: with a cut of the longest row's a
/// shorter one has a part too few or too many.
void window_beside_tiles(Problem &p, Rng &rng) {
  constexpr int kTile = 16;
  p.window_left = 4 * kTile * rng.between(1, 2) - 1; // whole parts of 64 keys
  p.num_splits = 0;
  p.batch = 4;
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = window_keys(p) + kTile * rng.between(1, 12) + rng.between(1, kTile - 1);
  p.seq_lens[rng.upto(p.batch - 1)] = window_keys(p) + kTile * 13;
}

/// Long rows that are not alone, or that meet a feature: each kind is one.
void long_rows(Problem &p, int kind, Rng &rng) {
  p.group_size = 1;
  p.num_splits = 0;
  switch (kind) {
  case 0: // each has a table of its own
    p.batch = p.group_size = 2;
    p.seq_lens = {4'100 + rng.upto(200), 4'200 + rng.upto(200)};
    break;
  case 1: // positions beyond what 15 bits hold
    p.batch = 1;
    p.q_len = 2;
    p.seq_lens = {33'000 + rng.upto(100)};
    break;
  case 2: // distances, the far ones of which have weight where a slope is negative
    p.batch = 2;
    p.group_size = 4;
    p.alibi = Alibi::kRandom;
    p.feature_seed = p.v.seed | 1;
    p.seq_lens = {rng.between(4'200, 4'400), rng.between(200, 300)};
    break;
  default: // a window that begins far behind the first key
    p.batch = 2;
    p.window_left = rng.between(500, 4'200) - 1;
    p.num_splits = rng.upto(1) * 3;
    p.seq_lens = {rng.between(8'300, 8'600), rng.between(4'300, 4'500)};
  }
}

/// More keys than 16 bits count, by so many that the mean of all shows those that are lost.
void longest_row(Problem &p, int kind, Rng &rng) {
  p.group_size = 1;
  p.batch = 1;
  p.page_size = 64;
  p.num_splits = rng.upto(1) * rng.between(2, 8);
  if (kind == 1)
    p.window_left = rng.between(58'200, 64'000) - 1; // its scores fill no shared memory
  p.seq_lens = {(1 << 16) + rng.between(3'000, 5'000)};
}

/// More splits than any small constant.
void many_splits(Problem &p, int kind, Rng &rng) {
  static constexpr int kSplits[] = {257, 513, 1'024};
  p.group_size = 1;
  p.batch = 1;
  p.num_splits = kSplits[kind];
  p.head_dim = kind == 1 ? 128 : 64;
  p.seq_lens = {p.num_splits * rng.between(1, 2) + rng.between(-1, 1)};
}

/// A window beside rows of half to four of it.
void long_window(Problem &p, int kind, Rng &rng) {
  static constexpr int kWindows[] = {128, 512, 1'024};
  p.window_left = kWindows[kind] - 1;
  p.kv = static_cast<KvType>(rng.upto(2));
  if (kind != 1) p.q_len = rng.upto(1) == 0 ? 8 : rng.between(2, 8);
  // Many windows of fp8 and several tokens, which are most in need of each other.
  if (kind == 0 && !is_fp8(p)) p.kv = KvType::kE4m3;
  p.num_splits = rng.upto(1) * rng.between(2, 4);
  p.batch = 3;
  p.seq_lens = {window_keys(p) / 2 + rng.between(1, 64), 2 * window_keys(p) + rng.between(-8, 8),
                window_keys(p) * rng.between(3, 4) + rng.between(-64, 0)};
}

/// Eight query tokens, the windows of which begin late in a tile: some do not see its first keys,
/// and no score is near 0, which a masked key would otherwise be taken for.
void window_of_far_scores(Problem &p, Rng &rng) {
  constexpr int kTile = 16;
  p.window_left = 127;
  p.q_len = 8;
  p.k.regime = Regime::kBelow;
  p.batch = 3;
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = window_keys(p) + p.q_len - 1 + kTile * rng.between(1, 6) + rng.between(9, kTile - 1);
}

void large_page(Problem &p, int kind, Rng &rng) {
  p.page_size = 256 << kind;
  p.num_kv_heads = 2;
  p.batch = 2;
  p.seq_lens = {p.page_size + rng.between(1, 100), 2 * p.page_size + rng.between(1, 100)};
}

/// Requests that share one page, and all go on behind it: page 0 is that of request 0, and in the
/// chain every sixth request has no more of it.
void share_one_page(Problem &p, Rng &rng) {
  p.sharing = Sharing::kChain;
  p.num_splits = rng.between(1, 4);
  p.page_size = 64;
  p.batch = rng.between(7, 9);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = rng.between(3 * p.page_size, 6 * p.page_size);
}

/// Rows of a request that do not divide half of a wide block, over a shared prefix of an fp8 cache
/// whose heads have scales of their own.
void straddle_half_blocks(Problem &p, Rng &rng) {
  p.feature_seed = p.v.seed | 1;
  p.kv = rng.upto(1) == 0 ? KvType::kE4m3 : KvType::kE5m2;
  p.k_scale = p.v_scale = ScaleLayout::kHead;
  p.kv_scales = KvScaleRegime::kSpread;
  p.q.regime = Regime::kWide;
  p.sharing = Sharing::kTree;
  p.num_splits = rng.between(1, 4);
  p.num_kv_heads = 2;
  p.group_size = std::array{12, 20, 24, 28}[rng.upto(3)];
  p.page_size = 48;
  p.batch = 108 / p.group_size + 1;
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = rng.between(200, 300);
}

/// A prefix of all, and a suffix of each.
void make_cascade(Problem &p, int kind, Rng &rng) {
  if (kind < kBatches) {
    p.batch = batch_of(kind, rng);
    p.group_size = 16;
    p.num_splits = kind % 2 * rng.between(2, 4);
    CascadeLevel suffix{16, 0, std::vector<int>(p.batch, 1), std::vector<int>(p.batch)};
    for (int &len : suffix.lens)
      len = std::min(128, keys_of_row(p.batch, rng));
    p.levels = {{16, 0, {p.batch}, {rng.between(1, 64)}}, suffix};
    return;
  }
  p.batch = 2;
  p.group_size = 1;
  p.num_splits = 0;
  switch (kind - kBatches) {
  case 0:
    p.levels = {{16, 0, {2}, {16'384 + rng.between(1, 100)}}, {16, 0, {1, 1}, {40, 4'100}}};
    break;
  case 1:
    p.num_splits = rng.upto(1) == 0 ? 257 : 513;
    p.levels = {{16, 0, {2}, {p.num_splits * rng.between(1, 2) + 1}}};
    break;
  default:
    p.levels = {{256, 0, {2}, {256 + rng.between(1, 300)}}, {512, 0, {1}, {700}}};
  }
}

constexpr int kManyStates[] = {257, 513, 1'024, 300};

void make_merge_states(Problem &p, int kind, Rng &rng) {
  p.batch = rng.between(1, 2);
  p.num_kv_heads = rng.between(1, 2);
  p.head_dim = 8 * rng.between(1, 8);
  p.num_states = kManyStates[kind];
  p.ragged = kind == 3;
  if (kind == 3) p.head_dim = 8 * rng.between(17, 32); // of a warp each: many workers fill a block
  p.lse_regime = LseRegime::kNormal;
}

void make_merge_state(Problem &p, int kind, Rng &rng) {
  p.batch = batch_of(kind * 3, rng);
  p.num_kv_heads = 16;
  p.head_dim = 64;
}

/// `count` kinds that are made alike, and the properties that have them.
struct Group {
  int count;
  void (*make)(Problem &p, int kind, Rng &rng);
  unsigned uses;
};

template <void (*make)(Problem &, Rng &)>
void alone(Problem &p, int, Rng &rng) {
  make(p, rng);
}

constexpr unsigned kValues = kServingValues, kBits = kServingBits, kCounts = kServingCounts;
constexpr Group kPaged[] = {{kBatches, many_requests, kValues},
                            {3, long_row, kValues | kCounts},
                            {4, long_rows, kValues},
                            {1, longest_row, kCounts},
                            {1, [](Problem &p, int, Rng &rng) { longest_row(p, 1, rng); }, kValues},
                            {3, many_splits, kValues},
                            {3, long_window, kValues},
                            {1, alone<window_beside_tiles>, kValues},
                            {1, alone<window_of_far_scores>, kValues},
                            {3, large_page, kValues},
                            {4, many_heads_of_models, kValues},
                            {1, alone<share_one_page>, kValues},
                            {1, alone<straddle_half_blocks>, kValues},
                            {kBatches, batch_of_split_rows, kBits},
                            {2, split_often_with_many_bits, kServingRepeats},
                            {1, alone<batch_of_windows>, kBits},
                            {1, alone<short_rows_beside_long>, kBits},
                            {1, alone<batch_of_ragged_queries>, kBits}};
constexpr Group kCascade[] = {
    {kBatches, make_cascade, kValues | kBits},
    {3, [](Problem &p, int kind, Rng &rng) { make_cascade(p, kBatches + kind, rng); }, kValues}};
constexpr Group kMergeState[] = {{2, make_merge_state, kValues}};
constexpr Group kMergeStates[] = {
    {static_cast<int>(std::size(kManyStates)), make_merge_states, kValues}};

std::span<const Group> groups_of(Family family) {
  switch (family) {
  case Family::kPaged:
    return kPaged;
  case Family::kCascade:
    return kCascade;
  case Family::kMergeState:
    return kMergeState;
  case Family::kMergeStates:
    return kMergeStates;
  }
  return {};
}

} // namespace

std::vector<int> serving_kinds(Family family, unsigned use) {
  std::vector<int> out;
  int kind = 0;
  for (const Group &group : groups_of(family))
    for (int i = 0; i < group.count; ++i, ++kind)
      if (group.uses & use) out.push_back(kind);
  return out;
}

Problem serving_case(Problem p, int kind, Rng &rng) {
  if (is_attention(p)) make_cheap(p, rng);
  for (const Group &group : groups_of(p.family)) {
    if (kind < group.count) {
      group.make(p, kind, rng);
      break;
    }
    kind -= group.count;
  }
  fit_requests(p);
  return p;
}

} // namespace assay
