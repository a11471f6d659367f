// SPDX-License-Identifier: Apache-2.0
#include "properties/case/classify.h"

#include <algorithm>

#include "properties/case/features.h"
#include "properties/case/query_rows.h"

namespace assay {
namespace {

/// Without features but those of an fp8 cache.
bool plain_attention(const Problem &p) {
  return std::none_of(features().begin(), features().end(),
                      [&](const FeatureRow &f) { return f.bit != kFp8 && f.present(p); });
}

void add(std::vector<std::string> &names, bool member, const char *name) {
  if (member) names.emplace_back(name);
}

bool near_multiple(int n, int tile) {
  int rest = n % tile;
  return n >= tile - 1 && (rest <= 1 || rest == tile - 1);
}

void classify_lens(const Problem &p, const std::vector<int> &lens, int page_size,
                   std::vector<std::string> &out) {
  auto any = [&](auto predicate) { return std::any_of(lens.begin(), lens.end(), predicate); };
  add(out, any([&](int n) { return n % page_size != 0; }), "partial_last_page");
  add(out, any([&](int n) { return n > 0 && n % page_size == 0 && page_size > 1; }),
      "full_last_page");
  add(out, any([](int n) { return n > 1 && near_multiple(n, 16); }), "tile_edge");
  add(out, any([](int n) { return n > 64; }), "several_tiles");
  // A decode block steps over 64 keys; only from the second step on does a running maximum move.
  const bool moving = p.q.regime != Regime::kZero && p.k.regime != Regime::kZero &&
                      p.k.regime != Regime::kPlateau && p.k.regime != Regime::kTies &&
                      p.k.regime != Regime::kBinary;
  const int pieces = p.num_splits > 0 ? p.num_splits : p.batch * p.num_kv_heads > 3 ? 1 : 4;
  add(out, moving && any([&](int n) { return n > 128 * pieces; }), "moving_maximum");
  add(out, any([&](int n) { return p.num_splits > n; }), "splits_gt_keys");
  add(out, page_size == 1 && any([](int n) { return n > 0; }), "page_1");
}

void classify_attention(const Problem &p, std::vector<std::string> &out) {
  auto keys = keys_per_request(p);
  add(out, std::count(keys.begin(), keys.end(), 0) > 0, "empty_row");
  add(out, std::count(keys.begin(), keys.end(), 1) > 0, "one_key");
  add(out,
      p.batch > 1 &&
          std::adjacent_find(keys.begin(), keys.end(), std::not_equal_to<>()) != keys.end(),
      "ragged");
  add(out, p.group_size > 1, "group_gt_1");
  add(out, p.group_size > 1 && p.num_kv_heads > 1, "gqa_heads");
  add(out, p.group_size % 8 != 0, "group_off_tile");
  add(out, p.num_splits > 1, "splits_gt_1");
  add(out, p.head_dim == 128, "head_dim_128");
  add(out, p.head_dim == 256, "head_dim_256");
  add(out, p.dtype == Dtype::kFp16, "fp16");
  add(out, p.placement != Placement::kIdentity, "pages_moved");
  add(out,
      p.k.regime == Regime::kHuge || p.k.regime == Regime::kOffset || p.k.regime == Regime::kBelow,
      "extreme_scores");
  add(out, p.k.regime == Regime::kRising, "rising_scores");
  add(out, p.huge_pool, "huge_pool");
}

void classify_cascade(const Problem &p, std::vector<std::string> &out) {
  bool prefix_0 = false, shared = false, uncovered = false, dense = false;
  for (const CascadeLevel &level : p.levels) {
    classify_lens(p, level.lens, level.page_size, out);
    int covered = 0;
    for (size_t s = 0; s < level.lens.size(); ++s) {
      prefix_0 |= level.requests[s] > 0 && level.lens[s] == 0;
      shared |= level.requests[s] > 1 && level.lens[s] > 0;
      // Rows and keys of several tiles of a tensor core kernel.
      dense |= level.requests[s] * p.group_size >= 32 && level.lens[s] > 256;
      covered += level.requests[s];
    }
    uncovered |= covered < p.batch;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  add(out, prefix_0, "prefix_len_0");
  add(out, shared, "shared_prefix");
  add(out, dense && p.num_splits == 0, "long_prefix");
  add(out, uncovered, "uncovered_request");
  add(out, p.levels.size() > 1, "levels_gt_1");
  add(out,
      std::any_of(p.levels.begin(), p.levels.end(),
                  [](const CascadeLevel &level) { return level.lens.size() > 32; }),
      "segments_gt_32");
}

void classify_merge(const Problem &p, std::vector<std::string> &out) {
  bool all = p.lse_regime == LseRegime::kAllEmpty;
  bool some = p.lse_regime == LseRegime::kSomeEmpty || p.lse_regime == LseRegime::kOneAlive;
  add(out, all && p.batch > 0, "all_empty_merge");
  add(out, some && p.batch > 0, "empty_side");
  add(out, !all && !some && p.batch > 0, "no_empty_side");
  add(out, p.lse_regime == LseRegime::kHuge || p.lse_regime == LseRegime::kSpread, "far_lse");
  add(out, p.in_place != InPlace::kNo, "in_place");
  add(out, p.dtype == Dtype::kFp32, "fp32");
  if (p.family != Family::kMergeStates) return;
  add(out, p.ragged, "ragged");
  add(out, p.num_states == 0, "zero_states");
  add(out, p.num_states == 1, "one_state");
  add(out, p.num_states > 2, "states_gt_2");
  add(out, p.num_states > 16, "states_gt_16");
}

} // namespace

std::vector<std::string> classify(const Problem &p) {
  std::vector<std::string> out;
  if (p.family == Family::kPaged) {
    classify_lens(p, p.seq_lens, p.page_size, out);
    add(out, p.sharing != Sharing::kNone, "shared_pages");
    add(out, !has_features(p), "plain");
    const bool tree = window_keys(p) == 0 && p.num_splits > 0 && shared_keys(p) >= 64;
    add(out, tree && plain_attention(p) && !is_fp8(p), "prefix_tree");
    add(out, tree && plain_attention(p) && is_fp8(p), "fp8_prefix_tree");
    add(out, tree && p.q_len > 1, "token_prefix_tree");
    add(out, tree && (p.logits_soft_cap != Softcap::kNone || p.alibi != Alibi::kNone),
        "mapped_prefix_tree");
    add(out, p.even_lengths, "even_lengths");
    add(out, p.enable_pdl, "enable_pdl");
    for (const FeatureRow &feature : features())
      feature.classify(p, out);
  }
  if (p.family == Family::kCascade) classify_cascade(p, out);
  is_attention(p) ? classify_attention(p, out) : classify_merge(p, out);
  add(out, p.batch == 0, "empty_batch");
  add(out, !p.has_lse, "no_lse");
  return out;
}

std::vector<std::string> optional_classes() {
  std::vector<std::string> out = {"head_dim_256"};
  for (const FeatureRow &feature : features())
    for (const char *name : feature.classes)
      if (std::find(out.begin(), out.end(), name) == out.end()) out.emplace_back(name);
  return out;
}

namespace {

std::vector<std::string> important_paged_classes() {
  std::vector<std::string> out = {
      "empty_row",      "one_key",        "partial_last_page", "full_last_page",
      "tile_edge",      "page_1",         "group_gt_1",        "gqa_heads",
      "splits_gt_1",    "splits_gt_keys", "pages_moved",       "ragged",
      "several_tiles",  "fp16",           "head_dim_128",      "huge_pool",
      "moving_maximum", "plain",          "prefix_tree"};
  for (std::string &name : optional_classes())
    out.push_back(std::move(name));
  return out;
}

} // namespace

std::vector<std::string> important_classes(Family family) {
  switch (family) {
  case Family::kPaged:
    return important_paged_classes();
  case Family::kCascade:
    return {"empty_row",         "partial_last_page", "tile_edge",     "prefix_len_0",
            "shared_prefix",     "group_gt_1",        "splits_gt_1",   "several_tiles",
            "uncovered_request", "levels_gt_1",       "huge_pool",     "moving_maximum",
            "head_dim_256",      "long_prefix",       "segments_gt_32"};
  case Family::kMergeState:
    return {"all_empty_merge", "empty_side", "no_empty_side", "far_lse", "in_place"};
  case Family::kMergeStates:
    return {"all_empty_merge", "empty_side", "no_empty_side", "ragged",
            "zero_states",     "one_state",  "states_gt_2",   "states_gt_16"};
  }
  return {};
}

} // namespace assay
