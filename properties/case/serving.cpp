// SPDX-License-Identifier: Apache-2.0
#include "properties/case/serving.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "properties/case/directed_paged.h"

namespace assay {
namespace {

/// One kv head of ordinary values: what is large must not be expensive.
void make_cheap(Problem &p, Dice &dice) {
  p = without_features(std::move(p));
  forget_pages(p);
  p.num_kv_heads = 1;
  p.group_size = dice.between(1, 2);
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

/// Kind 0 to 4: 16 to 256 requests, or one more or less.
int batch_of(int kind, Dice &dice) { return (16 << kind) + dice.between(-1, 1); }

/// Keys of a row of a batch: several tiles, the fewer the more rows there are.
int keys_of_row(int batch, Dice &dice) {
  constexpr int kKeys = 12'000; // of the whole batch, about
  return dice.upto(9) == 0 ? dice.upto(1) : dice.between(33, std::clamp(kKeys / batch, 70, 512));
}

void many_requests(Problem &p, int kind, Dice &dice) {
  p.batch = batch_of(kind, dice);
  p.group_size = 16;
  p.num_splits = dice.upto(1) * dice.between(2, 8);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = keys_of_row(p.batch, dice);
  p.seq_lens.back() = dice.between(33, 100);
}

void long_row(Problem &p, int kind, Dice &dice) {
  static constexpr int kKeys[] = {4'096, 8'192, 16'384, 33'000};
  p.group_size = 1;
  p.batch = 1;
  p.seq_lens = {kKeys[kind] + dice.between(1, 100)};
  p.num_splits = dice.upto(1) * dice.between(2, 8);
}

/// More splits than any small constant.
void many_splits(Problem &p, int kind, Dice &dice) {
  static constexpr int kSplits[] = {257, 513, 1'024};
  p.group_size = 1;
  p.batch = 1;
  p.num_splits = kSplits[kind];
  p.seq_lens = {p.num_splits * dice.between(1, 2) + dice.between(-1, 1)};
}

/// A window beside rows of half to four of it.
void long_window(Problem &p, int kind, Dice &dice) {
  static constexpr int kWindows[] = {128, 512, 1'024};
  p.window = kWindows[kind];
  p.kv = static_cast<KvType>(dice.upto(2));
  if (kind != 1) p.q_len = dice.between(2, 8);
  // Many windows of fp8 and several tokens, which are most in need of each other.
  if (kind == 0 && !is_fp8(p)) p.kv = KvType::kE4m3;
  p.num_splits = dice.upto(1) * dice.between(2, 4);
  p.batch = 3;
  p.seq_lens = {p.window / 2 + dice.between(1, 64), 2 * p.window + dice.between(-8, 8),
                p.window * dice.between(3, 4) + dice.between(-64, 0)};
}

void large_page(Problem &p, int kind, Dice &dice) {
  p.page_size = 256 << kind;
  p.batch = 2;
  p.seq_lens = {p.page_size + dice.between(1, 100), 2 * p.page_size + dice.between(1, 100)};
}

/// Requests that share one page, and all go on behind it: page 0 is that of request 0, and in the
/// chain every sixth request has no more of it.
void share_one_page(Problem &p, Dice &dice) {
  p.sharing = Sharing::kChain;
  p.num_splits = dice.between(1, 4);
  p.page_size = 64;
  p.batch = dice.between(7, 9);
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = dice.between(3 * p.page_size, 6 * p.page_size);
}

/// Rows of a request that do not divide half of a wide block, over a shared prefix of an fp8 cache
/// whose heads have scales of their own.
void straddle_half_blocks(Problem &p, Dice &dice) {
  p.feature_seed = p.v.seed | 1;
  p.kv = dice.upto(1) == 0 ? KvType::kE4m3 : KvType::kE5m2;
  p.k_scale = p.v_scale = ScaleLayout::kHead;
  p.kv_scales = KvScaleRegime::kSpread;
  p.q.regime = Regime::kWide;
  p.sharing = Sharing::kTree;
  p.num_splits = dice.between(1, 4);
  p.num_kv_heads = 2;
  p.group_size = std::array{12, 20, 24, 28}[dice.upto(3)];
  p.page_size = 48;
  p.batch = 108 / p.group_size + 1;
  p.seq_lens.resize(p.batch);
  for (int &len : p.seq_lens)
    len = dice.between(200, 300);
}

constexpr int kPagedKinds = kServingBatches + kServingRows + 3 + 3 + 3 + 2;

void make_paged(Problem &p, int kind, Dice &dice) {
  if (kind < kServingBatches) return many_requests(p, kind, dice);
  kind -= kServingBatches;
  if (kind < kServingRows) return long_row(p, kind, dice);
  kind -= kServingRows;
  if (kind < 3) return many_splits(p, kind, dice);
  if (kind < 6) return long_window(p, kind - 3, dice);
  if (kind < 9) return large_page(p, kind - 6, dice);
  kind == 9 ? share_one_page(p, dice) : straddle_half_blocks(p, dice);
}

constexpr int kCascadeKinds = kServingBatches + 3;

/// A prefix of all, and a suffix of each.
void make_cascade(Problem &p, int kind, Dice &dice) {
  if (kind < kServingBatches) {
    p.batch = batch_of(kind, dice);
    p.group_size = 16;
    p.num_splits = dice.upto(1) * dice.between(2, 4);
    CascadeLevel suffix{16, 0, std::vector<int>(p.batch, 1), std::vector<int>(p.batch)};
    for (int &len : suffix.lens)
      len = std::min(128, keys_of_row(p.batch, dice));
    p.levels = {{16, 0, {p.batch}, {dice.between(1, 64)}}, suffix};
    return;
  }
  p.batch = 2;
  p.group_size = 1;
  p.num_splits = 0;
  switch (kind - kServingBatches) {
  case 0:
    p.levels = {{16, 0, {2}, {16'384 + dice.between(1, 100)}}, {16, 0, {1, 1}, {40, 4'100}}};
    break;
  case 1:
    p.num_splits = dice.upto(1) == 0 ? 257 : 513;
    p.levels = {{16, 0, {2}, {p.num_splits * dice.between(1, 2) + 1}}};
    break;
  default:
    p.levels = {{256, 0, {2}, {256 + dice.between(1, 300)}}, {512, 0, {1}, {700}}};
  }
}

constexpr int kManyStates[] = {257, 513, 1'024, 300};

void make_merge_states(Problem &p, int kind, Dice &dice) {
  p.batch = dice.between(1, 2);
  p.num_kv_heads = dice.between(1, 2);
  p.head_dim = 8 * dice.between(1, 8);
  p.num_states = kManyStates[kind];
  p.ragged = kind == 3;
  if (kind == 3) p.head_dim = 8 * dice.between(17, 32); // of a warp each: many workers fill a block
  p.lse_regime = LseRegime::kNormal;
}

constexpr int kPairKinds = 2;

void make_merge_state(Problem &p, int kind, Dice &dice) {
  p.batch = batch_of(kind * 3, dice);
  p.num_kv_heads = 16;
  p.head_dim = 64;
}

} // namespace

int serving_kinds(Family family) {
  switch (family) {
  case Family::kPaged:
    return kPagedKinds;
  case Family::kCascade:
    return kCascadeKinds;
  case Family::kMergeState:
    return kPairKinds;
  case Family::kMergeStates:
    return static_cast<int>(std::size(kManyStates));
  }
  return 0;
}

Problem serving_case(Problem p, int kind, Dice &dice) {
  if (p.family == Family::kMergeState) {
    make_merge_state(p, kind, dice);
    return p;
  }
  if (p.family == Family::kMergeStates) {
    make_merge_states(p, kind, dice);
    return p;
  }
  make_cheap(p, dice);
  p.family == Family::kPaged ? make_paged(p, kind, dice) : make_cascade(p, kind, dice);
  return p;
}

} // namespace assay
