// SPDX-License-Identifier: Apache-2.0
#include "properties/run/draw.h"

#include "properties/case/classify.h"
#include "properties/case/directed.h"
#include "properties/case/hash.h"
#include "properties/case/problem_gen.h"
#include "properties/case/serving.h"
#include "properties/run/runner.h"

namespace assay {
namespace {

uint64_t name_hash(const char *name) {
  uint64_t h = 0;
  for (; *name != '\0'; ++name)
    h = hash_mix(h ^ static_cast<unsigned char>(*name));
  return h;
}

/// The kinds of serving sizes that a property has.
std::vector<int> serving_kinds_of(const Property &property, Family family) {
  constexpr struct {
    std::string_view property;
    unsigned use;
  } kUses[] = {{"within_budget", kServingValues},
               {"batch_independence", kServingBits},
               {"zero_query_counts_keys", kServingCounts},
               {"run_to_run", kServingRepeats}};
  for (const auto &[name, use] : kUses)
    if (name == property.name) return serving_kinds(family, use);
  return {};
}

/// `limits` then let it through.
Problem with_serving_sizes(const Problem &p, int kind, uint64_t seed, bool fixed_splits,
                           Limits &limits) {
  Rng rng(hash_values(seed, 'v'));
  Problem out = serving_case(p, kind, rng);
  if (fixed_splits && out.num_splits == 0) out.num_splits = 2 + kind % 5;
  limits = full_limits();
  return out;
}

/// Whether bits are promised not to follow the batch only where the call says how often to split.
bool promises_with_fixed_splits(const Property &property, const assay_kernel &kernel) {
  return &property == find_property("batch_independence") &&
         kernel.batch_invariance == ASSAY_BATCH_FIXED;
}

/// What is too large to be drawn often; the largest only where a run has hundreds of cases.
/// `limits` then let it through.
Problem once_a_run(Problem p, uint64_t index, Limits &limits) {
  constexpr uint64_t kCrowded = 20, kLargePages = 201, kLongestRow = 202, kMostHeads = 203;
  if (index == kCrowded) return with_most_requests(std::move(p));
  if (index == kMostHeads) {
    limits = full_limits();
    return with_most_heads(std::move(p));
  }
  if (index != kLargePages && index != kLongestRow) return p;
  limits.keys = full_limits().keys;
  limits.slots = 2 * limits.keys;
  return index == kLargePages ? with_large_pages(std::move(p)) : with_longest_row(std::move(p));
}

} // namespace

Problem draw_case(const Property &property, const assay_kernel &kernel,
                  const RunnerOptions &options, uint64_t index) {
  uint64_t seed =
      hash_values(options.seed, name_hash(property.name), name_hash(kernel.name), index);
  auto family = static_cast<Family>(kernel.family);
  // One draw in 16 under the larger limits, cut to what the property multiplies.
  bool large = index % 16 == 15 && property.cost <= 2;
  Limits limits = large ? large_limits() : index % 2 == 0 ? fuzz_limits() : options.limits;
  if (large) limits.slots = 2048;
  Problem p = directed(draw_problem(limits, family, seed), limits, seed);
  if (&property == find_property("within_budget")) p = once_a_run(std::move(p), index, limits);
  if (index >= kFirstServingDraw) {
    const std::vector<int> kinds = serving_kinds_of(property, family);
    p = with_serving_sizes(p, kinds.at((index - kFirstServingDraw) % kinds.size()), seed,
                           promises_with_fixed_splits(property, kernel), limits);
  }
  const auto narrow = options.envelopes.find(&kernel);
  return narrow == options.envelopes.end() ? p : narrow->second.fit(p, limits);
}

int serving_draws(const Property &property, const assay_kernel &kernel) {
  return static_cast<int>(serving_kinds_of(property, static_cast<Family>(kernel.family)).size());
}

std::vector<std::string> unseen_classes(const assay_kernel &kernel, const RunnerOptions &options) {
  constexpr uint64_t kDraws = 2000;
  if (options.envelopes.count(&kernel) == 0) return {};
  std::vector<std::string> unseen = important_classes(static_cast<Family>(kernel.family));
  for (uint64_t index = 0; index < kDraws && !unseen.empty(); ++index) {
    const Problem p = draw_case(properties().front(), kernel, options, index);
    if (options.assumed.no_empty_requests && has_empty_request(p)) continue;
    for (const std::string &name : classify(p))
      std::erase(unseen, name);
  }
  return unseen;
}

} // namespace assay
