// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/campaign/residual.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace assay::campaign {
namespace {

using Samples = std::vector<std::set<std::string>>;

constexpr int kMinSamples = 20;

Residual estimate(const Samples &samples) {
  std::map<std::string, int> seen;
  for (const auto &sample : samples)
    for (const std::string &species : sample)
      ++seen[species];
  double once = 0, twice = 0;
  for (const auto &[species, times] : seen) {
    once += times == 1;
    twice += times == 2;
  }
  const auto n = static_cast<double>(samples.size());
  Residual r;
  r.samples = static_cast<int>(samples.size());
  r.species = static_cast<int>(seen.size());
  r.expected = once / n;
  // Nothing seen once: the rule of three, what 95 % of campaigns as long would have shown.
  const double error = once == 0 ? 3 / n : 1.96 * std::sqrt(once + 2 * twice) / n;
  r.low = std::max(0.0, r.expected - error);
  r.high = r.expected + error;
  return r;
}

/// Neighbours joined; an odd last one is left out.
Samples pairs_of(const Samples &samples) {
  Samples out;
  for (size_t i = 0; i + 1 < samples.size(); i += 2) {
    out.push_back(samples[i]);
    out.back().insert(samples[i + 1].begin(), samples[i + 1].end());
  }
  return out;
}

} // namespace

Residual residual(const Samples &samples) {
  if (samples.size() < kMinSamples) {
    Residual none;
    none.samples = static_cast<int>(samples.size());
    none.why_none = fmt::format("{} runs, and {} are needed", samples.size(), kMinSamples);
    return none;
  }
  Residual r = estimate(samples);
  const Residual doubled = estimate(pairs_of(samples));
  // A pair shows what either of two runs does, so it is expected to show twice as much.
  if (doubled.expected / 2 < r.low || doubled.expected / 2 > r.high)
    r.why_none = fmt::format(
        "with pairs of runs as samples it is {:.3g} a run, with runs {:.3g}: it depends on "
        "what is called a sample",
        doubled.expected / 2, r.expected);
  return r;
}

} // namespace assay::campaign
