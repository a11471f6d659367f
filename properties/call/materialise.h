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
  /// Pages of each cache's pool, at least, and rows that q, o and lse have room for: buffers as
  /// large as those of another call lie where those did.
  std::vector<int> least_pages = {};
  int least_rows = 0;
};

/// Allocates and fills every buffer of the case; dead slots, outputs and spare pages hold poison.
/// Deterministic.
Tensors materialise(const Problem &p, const MaterialiseOptions &options = {});

} // namespace assay
