// SPDX-License-Identifier: Apache-2.0
#include "properties/run/draw.h"

#include "properties/case/classify.h"
#include "properties/case/directed.h"
#include "properties/case/hash.h"
#include "properties/case/problem_gen.h"
#include "properties/run/runner.h"

namespace assay {
namespace {

uint64_t name_hash(const char *name) {
  uint64_t h = 0;
  for (; *name != '\0'; ++name)
    h = hash_mix(h ^ static_cast<unsigned char>(*name));
  return h;
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
