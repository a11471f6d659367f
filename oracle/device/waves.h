// SPDX-License-Identifier: Apache-2.0
// Internal: a call cut into launches, each with scratch for its units and pairs.
#pragma once

#include <vector>

#include "oracle/device/bulk_call.h"

namespace assay::oracle::device {

/// A launch's share of the lists.
struct Wave {
  std::vector<ListWork> lists;
  std::vector<int32_t> rows;
  int64_t units = 0;
};

/// Pairs of a unit, query heads of a kv head, kv heads, components of V.
struct Sizes {
  int pairs, group, kv_heads, dims;
  size_t unit_bytes() const {
    return static_cast<size_t>(pairs) *
           (sizeof(FirstSums) + sizeof(SecondSums) +
            static_cast<size_t>(dims) * (sizeof(double) + sizeof(ComponentSums)));
  }
};

/** How many keys every run of a list but its last has; 0: they differ. */
int32_t keys_of_runs(const AttentionRows &rows, int list);

/** Throws std::invalid_argument where the kv heads of one row need more scratch than there is. */
std::vector<Wave> waves_of(const AttentionRows &rows, const Sizes &sizes);

} // namespace assay::oracle::device
