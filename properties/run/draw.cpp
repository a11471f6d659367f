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

/// Which kinds of serving sizes a property has.
struct ServingKinds {
  const char *property;
  int first, count;
};
constexpr int kAll = -1;
constexpr ServingKinds kServingKinds[] = {
    {"within_budget", 0, kAll},
    {"batch_independence", 0, kServingBatches},                // of attention
    {"zero_query_counts_keys", kServingBatches, kServingRows}, // of paged attention
};

ServingKinds serving_kinds_of(const Property &property, Family family) {
  for (const ServingKinds &kinds : kServingKinds) {
    if (kinds.property != std::string_view(property.name)) continue;
    if (kinds.count == kAll) return {kinds.property, 0, serving_kinds(family)};
    const bool has = family == Family::kPaged || (family == Family::kCascade && kinds.first == 0);
    return {kinds.property, kinds.first, has ? kinds.count : 0};
  }
  return {property.name, 0, 0};
}

/// `limits` then let it through.
Problem with_serving_sizes(const Problem &p, int kind, uint64_t seed, bool in_batch,
                           Limits &limits) {
  Dice dice(hash_values(seed, 'v'));
  Problem out = serving_case(p, kind, dice);
  // Bits are promised not to follow the batch where the call says how often to split.
  if (in_batch && out.num_splits == 0) out.num_splits = 2 + kind;
  limits = full_limits();
  return out;
}

/// What is too large to be drawn often; the largest only where a run has hundreds of cases.
/// `limits` then let it through.
Problem once_a_run(Problem p, uint64_t index, Limits &limits) {
  constexpr uint64_t kCrowded = 20, kLargePages = 201, kLongestRow = 202;
  if (index == kCrowded) return with_most_requests(std::move(p));
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
  if (index >= kFirstServingDraw)
    p = with_serving_sizes(
        p, serving_kinds_of(property, family).first + static_cast<int>(index - kFirstServingDraw),
        seed, &property == find_property("batch_independence"), limits);
  const auto narrow = options.envelopes.find(&kernel);
  return narrow == options.envelopes.end() ? p : narrow->second.fit(p, limits);
}

int serving_draws(const Property &property, const assay_kernel &kernel) {
  return serving_kinds_of(property, static_cast<Family>(kernel.family)).count;
}

std::vector<std::string> unseen_classes(const assay_kernel &kernel, const RunnerOptions &options) {
  constexpr uint64_t kDraws = 2000;
  if (options.envelopes.count(&kernel) == 0) return {};
  std::vector<std::string> unseen = important_classes(static_cast<Family>(kernel.family));
  for (uint64_t index = 0; index < kDraws && !unseen.empty(); ++index)
    for (const std::string &name :
         classify(draw_case(properties().front(), kernel, options, index)))
      std::erase(unseen, name);
  return unseen;
}

} // namespace assay
