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

/// Which draws of a property have the sizes of serving: kind `first_kind` at `first`, and the
/// others each `step` draws on.
struct ServingDraws {
  const char *property;
  uint64_t first, step;
  int first_kind, kinds; ///< kinds -1: all
};
constexpr ServingDraws kServingDraws[] = {
    {"within_budget", 30, 7, 0, -1},
    {"batch_independence", 3, 4, 0, kServingBatches},
    {"zero_query_counts_keys", 5, 8, kServingBatches, kServingRows},
};

/// The kind of a draw, or -1. Of cascades and merges only within_budget and batches have any.
int serving_kind(const Property &property, Family family, uint64_t index) {
  const bool attention = family == Family::kPaged || family == Family::kCascade;
  for (const ServingDraws &draws : kServingDraws) {
    if (draws.property != std::string_view(property.name)) continue;
    const int kinds = draws.kinds < 0 ? serving_kinds(family) : draws.kinds;
    if (draws.kinds > 0 && !attention) return -1;
    if (draws.first_kind > 0 && family != Family::kPaged) return -1;
    if (index < draws.first || (index - draws.first) % draws.step != 0) return -1;
    const uint64_t kind = (index - draws.first) / draws.step;
    return kind < static_cast<uint64_t>(kinds) ? draws.first_kind + static_cast<int>(kind) : -1;
  }
  return -1;
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
  if (const int kind = serving_kind(property, family, index); kind >= 0)
    p = with_serving_sizes(p, kind, seed, &property == find_property("batch_independence"), limits);
  const auto narrow = options.envelopes.find(&kernel);
  return narrow == options.envelopes.end() ? p : narrow->second.fit(p, limits);
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
