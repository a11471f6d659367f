// SPDX-License-Identifier: Apache-2.0
#include "properties/run/requirements.h"

#include <algorithm>

#include "oracle/bounds/promises.h"
#include "properties/case/classify.h"
#include "properties/case/features.h"
#include "properties/relate/field_call.h"

namespace assay {
namespace {

/// A bit, its word, and the classes that no case shows any more when the bit is given up or set.
struct Word {
  unsigned bit;
  std::string word;
  std::vector<const char *> classes;
};

const std::vector<Word> &families() {
  static const std::vector<Word> words = [] {
    std::vector<Word> out;
    for (Family f : {Family::kPaged, Family::kCascade, Family::kMergeState, Family::kMergeStates})
      out.push_back({1u << static_cast<unsigned>(f), std::string(name_of(f)), {}});
    return out;
  }();
  return words;
}

const std::vector<Word> &needs() {
  static const std::vector<Word> words = {{kSplits, "splits", {}},
                                          {kExactNumbers, "exact numbers", {}},
                                          {kExecutor, "the executor", {}},
                                          {kDeterminism, "declared determinism", {}},
                                          {kExactWeights, "exact weights", {}},
                                          {kNanContract, "declared NaN", {}},
                                          {kChecks, "declared checks", {}},
                                          {kPageLists, "page lists", {}},
                                          {kKeyOrder, "a declared order", {}}};
  return words;
}

const std::vector<Word> &feature_words() {
  static const std::vector<Word> words = [] {
    std::vector<Word> out;
    for (const FeatureRow &row : features())
      out.push_back({row.bit, row.word, row.classes});
    std::stable_sort(out.begin(), out.end(),
                     [](const Word &a, const Word &b) { return a.bit < b.bit; });
    return out;
  }();
  return words;
}

const std::vector<Word> &settings() {
  static const std::vector<Word> words = {
      {kSplitCount, "split count", {"splits_gt_1", "splits_gt_keys", "long_prefix"}},
      {kPlacement, "placement", {"pages_moved"}},
      {kElementType, "dtype", {"fp16"}},
      {kHeadDim, "head_dim", {"head_dim_128", "head_dim_256"}},
      {kLiveStates, "live states", {"all_empty_merge", "zero_states", "one_state"}},
      {kScores, "scores", {"moving_maximum", "softcap_active"}},
      {kLengths,
       "lengths",
       {"several_tiles", "full_last_page", "moving_maximum", "long_prefix", "prefix_tree",
        "fp8_prefix_tree", "token_prefix_tree", "mapped_prefix_tree"}},
      {kWindowSize, "window", {"plain"}},
      {kEmptyStates, "empty states", {"no_empty_side", "far_lse"}},
      {kOwnMerges, "calls", {"in_place", "ragged", "zero_states", "one_state", "states_gt_16"}},
      {kPairs, "pairs", {"states_gt_2"}},
      {kOwnPages,
       "pages",
       {"prefix_tree", "fp8_prefix_tree", "token_prefix_tree", "mapped_prefix_tree"}}};
  return words;
}

std::vector<std::string> words_of(const std::vector<Word> &words, unsigned bits) {
  std::vector<std::string> out;
  for (const Word &word : words)
    if (bits & word.bit) out.push_back(word.word);
  return out;
}

void drop_classes(std::vector<std::string> &names, const std::vector<Word> &words, unsigned bits) {
  for (const Word &word : words)
    for (const char *name : word.classes)
      if (bits & word.bit) std::erase(names, name);
}

unsigned bit_of(std::string_view feature) {
  unsigned bit = 0;
  for (const FeatureRow &row : features())
    if (row.word == feature) bit = row.bit;
  return bit;
}

/// invariants/dyadic_exact.cpp says why.
bool exact_weights(const assay_arithmetic &a) {
  return a.exponential == ASSAY_EXP_BASE2 && a.sum_format == ASSAY_FORMAT_FP32 &&
         a.partial_format == ASSAY_FORMAT_FP32 && a.score_format == ASSAY_FORMAT_FP32 &&
         a.kv_format == ASSAY_FORMAT_FP32 && a.q_format == ASSAY_FORMAT_FP32 &&
         a.product_format == ASSAY_FORMAT_FP32 && a.qk_sum_format == ASSAY_FORMAT_FP32 &&
         a.output_format == ASSAY_FORMAT_FP32 && a.q_abs_error <= 0x1p-38;
}

} // namespace

const char *name_of(Comparison comparison) {
  switch (comparison) {
  case Comparison::kBitwise:
    return "bitwise";
  case Comparison::kBitwiseInBatch:
    return "bitwise *";
  case Comparison::kPairwise:
    return "pairwise";
  case Comparison::kInBound:
    return "within bound";
  case Comparison::kKnownValue:
    return "known value";
  case Comparison::kRefusal:
    return "refusal";
  }
  return "";
}

PropertyWords words_of(const Property &property) {
  return {.families = words_of(families(), property.families),
          .needs = words_of(needs(), property.needs),
          .about = words_of(feature_words(), property.about),
          .without = words_of(feature_words(), property.without),
          .sets = words_of(settings(), property.sets)};
}

bool applies(const Property &property, const assay_kernel &kernel) {
  if ((property.families & 1u << kernel.family) == 0) return false;
  if (property.needs & kExecutor && kernel.target != ASSAY_TARGET_SIMT) return false;
  if (property.needs & kDeterminism && kernel.determinism == ASSAY_DETERMINISM_NONE) return false;
  if (property.needs & kSplits && kernel.arithmetic.max_splits < 2) return false;
  if (property.needs & kExactWeights && !exact_weights(kernel.arithmetic)) return false;
  if (property.needs & kNanContract && kernel.nan_contract == 0) return false;
  if (property.needs & kPageLists && (kernel.capabilities & ASSAY_PAGE_LISTS) == 0) return false;
  if (property.needs & kChecks && (kernel.capabilities & ASSAY_CHECKS_ARGUMENTS) == 0) return false;
  if (property.needs & kKeyOrder && kernel.key_order == nullptr) return false;
  // No call of a kernel that does not declare a capability has what needs it.
  for (const oracle::Promise &promise : oracle::promises())
    if (promise.feature != nullptr && promise.of(kernel) == 0 &&
        property.about & bit_of(promise.feature))
      return false;
  return (property.needs & kExactNumbers) == 0 || computes_field(kernel);
}

std::vector<std::string> required_classes(const Property &property, const assay_kernel &kernel) {
  std::vector<std::string> names = important_classes(static_cast<Family>(kernel.family));
  drop_classes(names, feature_words(), property.without);
  // Without these nothing asks where the keys of a shard stand.
  constexpr unsigned kPositions = kTokens | kWindow | kAlibi;
  if ((property.without & kPositions) == kPositions) std::erase(names, "shard_with_positions");
  drop_classes(names, settings(), property.sets);
  return names;
}

} // namespace assay
