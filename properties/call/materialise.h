// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "properties/call/tensors.h"

namespace assay {

struct MaterialiseOptions {
  bool unshare = false;       ///< give every user of a shared page its own copy
  bool cache_contents = true; ///< false: K and V have no bytes here
  /// Columns of each cache's page table, at least; empty: as many as its rows need.
  std::vector<int> least_columns = {};
};

/// Allocates and fills every buffer of the case; dead slots, outputs and spare pages hold poison.
/// Deterministic.
Tensors materialise(const Problem &p, const MaterialiseOptions &options = {});

} // namespace assay
