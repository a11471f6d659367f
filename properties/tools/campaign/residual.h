// SPDX-License-Identifier: Apache-2.0
// What is left to see, from how much was seen once (Good and Turing; for incidences Chao and
// Colwell 2017).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::campaign {

/// Expected number of species that the next sample shows and none of the samples so far did.
struct Residual {
  double expected = 0;      ///< Q1 / n: species seen in one sample alone, over samples
  double low = 0, high = 0; ///< 95 %, from the variance (Q1 + 2 Q2) / n^2; low >= 0
  int samples = 0, species = 0;
  std::string why_none; ///< no estimate, and why; then the numbers mean nothing
};

/// The estimate holds only if it does not depend on what is called a sample: with pairs of samples
/// as samples it must be twice as large, within its own interval. Fewer than 20 samples: none.
Residual residual(const std::vector<std::set<std::string>> &samples);

} // namespace assay::campaign
