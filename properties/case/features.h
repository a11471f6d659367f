// SPDX-License-Identifier: Apache-2.0
// What a call adds to plain attention, one row a feature: how a case is without it, what is simpler
// and the classes that it brings. The runner's words and requirements are read from the same rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "properties/case/simplify.h"

namespace assay {

using ClassNames = std::vector<std::string>;

struct FeatureRow {
  unsigned bit; ///< Feature
  const char *word;
  bool (*present)(const Problem &);
  void (*remove)(Problem &);
  /// Appends cases that are simpler in this feature.
  void (*simplify)(const Problem &, Candidates &);
  /// Appends the classes of its own that a case shows.
  void (*classify)(const Problem &, ClassNames &);
  /// Classes that a run of a kernel with the feature must have seen. Some need two features.
  std::vector<const char *> classes;
};

/// The features of paged attention. The order is that of the words in causes and fingerprints.
std::span<const FeatureRow> features();

} // namespace assay
