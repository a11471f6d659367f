// SPDX-License-Identifier: Apache-2.0
#include "properties/run/registry.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "properties/case/classify.h"
#include "properties/relate/field_call.h"

namespace assay {
namespace {

constexpr unsigned bit(Family f) { return 1u << static_cast<unsigned>(f); }
constexpr unsigned kPaged = bit(Family::kPaged);
constexpr unsigned kCascade = bit(Family::kCascade);
constexpr unsigned kAttention = kPaged | kCascade;
constexpr unsigned kPair = bit(Family::kMergeState);
constexpr unsigned kMerge = kPair | bit(Family::kMergeStates);
constexpr unsigned kAll = kAttention | kMerge;

constexpr Property kProperties[] = {
    {"within_budget", kAll, "within bound",
     "every O and LSE element lies in the interval that the declared arithmetic earns",
     "any wrong value", 1, within_budget},
    {"poison_untouched", kAll, "bitwise",
     "dead memory never changes a bit; only outputs are written",
     "late masks, reads past the end, stray writes, dirty workspace", 2, poison_untouched},
    {"run_to_run", kAll, "bitwise", "the same call twice gives the same bits",
     "races, arrival-order atomics", 2, run_to_run},
    {"schedule_independence", kAll, "bitwise",
     "thread order, block order and copy completion never change a bit",
     "missing barriers, missing waits", 4, schedule_independence},
    {"early_start_equals_plain", kPaged, "bitwise",
     "behind a kernel that writes q and the newest tokens last, an early start changes no bit",
     "reads, writes or exits before the wait for the grid in front", 2, early_start_equals_plain},
    {"nan_containment", kAll, "bitwise", "NaN or Inf of one (request, head) never reaches another",
     "0 * NaN in padded tile rows, shared slots", 2, nan_containment},
    {"batch_independence", kAll, "bitwise (within bound when the kernel picks the split)",
     "a request alone gives what it gives in its batch", "row offsets, shared scratch, plans", 2,
     batch_independence},
    {"head_permutation", kAll, "bitwise", "rotating the kv heads rotates the output",
     "swapped or fixed heads, head strides", 2, head_permutation},
    {"constant_v", kAttention, "within bound", "equal value vectors give that vector",
     "weights that do not sum to one", 1, constant_v},
    {"v_affine", kAll, "within bound", "-2 V + 3 gives -2 O + 3 and the same LSE",
     "terms that bypass the weights", 2, v_affine},
    {"score_shift", kAll, "within bound", "a constant added to all scores moves only LSE",
     "finite sentinels, maxima from 0, LSE without the maximum", 2, score_shift},
    {"algebra_exact", kAll, "known value",
     "over exact numbers O and LSE are the defined function, in every bit",
     "any index, mask, page, rescaling or weight mistake, LSE included", 1, algebra_exact},
    {"page_permutation", kAttention, "bitwise", "moving pages in the pool changes nothing",
     "page strides, cached page pointers", 2, page_permutation},
    {"page_remap", kPaged, "bitwise", "shared pages equal private copies",
     "page ids used as positions, writes to the cache", 2, page_remap},
    {"page_size_invariance", kAttention, "within bound", "the page size changes nothing",
     "last-page bounds, slot arithmetic", 2, page_size_invariance},
    {"gqa_equals_mha", kAttention, "within bound", "a head group equals replicated kv heads",
     "head maps, packed tile rows", 2, gqa_equals_mha},
    {"key_permutation", kAttention, "within bound", "the order of keys changes nothing",
     "rescaling, K and V walked differently", 2, key_permutation},
    {"key_duplication", kAttention, "within bound", "every key twice: same O, LSE + log 2",
     "dropped keys, averages without weights", 2, key_duplication},
    {"extreme_scores_finite", kAttention, "finite, within bound",
     "scores of 1e5, offsets and ramps give finite results", "overflowing exponentials, sentinels",
     1, extreme_scores_finite},
    {"zero_query_counts_keys", kAttention, "within bound",
     "q = 0 with one-hot values counts the keys", "lost, extra, repeated keys", 1,
     zero_query_counts_keys},
    {"dyadic_exact", kAttention, "known value",
     "scores whose exponentials are powers of two give N / D to the last bits",
     "lost, extra, misplaced keys, rescaling, merge weights, an inexact scale", 1, dyadic_exact},
    {"any_partition_count", kAttention, "within bound",
     "1, 2, 3, 7, 32, 100 and random splits agree",
     "split bounds, unnormalised averages, combine limits", 7, any_partition_count},
    {"more_partitions_than_keys", kAttention, "within bound", "empty splits contribute nothing",
     "NaN of empty splits, unwritten partials", 1, more_partitions_than_keys},
    {"q_len_equals_decode", kPaged, "within bound",
     "several query tokens equal as many calls with one", "causal bounds, token strides", 5,
     q_len_equals_decode},
    {"window_hides", kPaged, "bitwise", "keys before the window never change a bit",
     "late masks, windows off by one", 2, window_hides},
    {"sink_equals_key", kPaged, "within bound", "a sink equals one more key of value 0",
     "sinks lost, repeated per split, missing from LSE", 2, sink_equals_key},
    {"fp8_equals_widened", kPaged, "within bound",
     "an fp8 cache equals its values, scaled, in the dtype of the call; NaN stays NaN",
     "decoding, scales of another head", 3, fp8_equals_widened},
    {"cascade_equals_flat", kCascade, "within bound",
     "levels equal one private segment per request", "segment offsets, prefix twice or never", 2,
     cascade_equals_flat},
    {"merge_identity", kMerge, "bitwise", "empty states return the live one bit for bit",
     "-inf - -inf, 0 * NaN", 1, merge_identity},
    {"merge_commutative", kMerge, "within bound", "merge(a, b) = merge(b, a)", "one-sided maxima",
     2, merge_commutative},
    {"merge_associative", kMerge, "within bound", "(a b) c = a (b c)",
     "LSE that is not the union's", 4, merge_associative},
    {"merge_any_tree", kMerge, "within bound", "any tree equals a left fold",
     "merges that hold for leaves only", 8, merge_any_tree},
    {"merge_any_order", kMerge, "within bound", "any order of states agrees",
     "dependence on first or last", 9, merge_any_order},
    {"merge_in_place", kPair, "bitwise", "in place equals out of place",
     "outputs written before inputs are read", 3, merge_in_place},
};

} // namespace

std::span<const Property> properties() { return kProperties; }

const Property *find_property(std::string_view name) {
  for (const Property &property : kProperties)
    if (name == property.name) return &property;
  return nullptr;
}

bool applies(const Property &property, const assay_kernel &kernel) {
  if ((property.families & 1u << kernel.family) == 0) return false;
  if (property.check == schedule_independence) return kernel.target == ASSAY_TARGET_SIMT;
  if (property.check == algebra_exact) return computes_field(kernel);
  if (property.check == run_to_run) return kernel.determinism != ASSAY_DETERMINISM_NONE;
  bool about_splits =
      property.check == any_partition_count || property.check == more_partitions_than_keys;
  return !about_splits || kernel.workspace_size != nullptr;
}

bool about_features(const Property &property) {
  return property.check == q_len_equals_decode || property.check == window_hides ||
         property.check == sink_equals_key || property.check == fp8_equals_widened;
}

std::vector<std::string> required_classes(const Property &property, const assay_kernel &kernel) {
  std::vector<std::string> names = important_classes(static_cast<Family>(kernel.family));
  auto drop = [&](const char *name) { std::erase(names, name); };
  // Classes that a property replaces by its own choice prove nothing there.
  if (property.check == any_partition_count || property.check == more_partitions_than_keys) {
    drop("splits_gt_1");
    drop("splits_gt_keys");
  }
  if (property.check == page_permutation) drop("pages_moved");
  auto drop_all = [&](std::initializer_list<const char *> dropped) {
    for (const char *name : dropped)
      drop(name);
  };
  const bool reorders = property.check == key_permutation || property.check == key_duplication;
  if (reorders || property.check == sink_equals_key || property.check == dyadic_exact)
    drop_all({"q_len_gt_1", "window_cuts", "alibi"});
  if (property.check == key_duplication || property.check == constant_v ||
      property.check == score_shift || property.check == sink_equals_key ||
      property.check == dyadic_exact)
    drop("sink");
  if (property.check == score_shift || property.check == sink_equals_key ||
      property.check == dyadic_exact)
    drop("softcap_active");
  if (property.check == dyadic_exact) drop("fp8");
  if (property.check == algebra_exact)
    drop_all({"fp16", "head_dim_128", "head_dim_256", "q_len_gt_1", "window_cuts", "alibi", "sink",
              "softcap_active", "fp8"});
  return names;
}

} // namespace assay
