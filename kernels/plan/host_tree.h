// SPDX-License-Identifier: Apache-2.0
// The finder of prefix trees on the host, for declarations, tools and tests.
#pragma once

#include "kernels/plan/find_prefix_tree.h"

#include <vector>

namespace assay {

struct KeyRange {
  int32_t begin, end;
};

/// A tree in host memory, as the device writes it.
class HostTree {
public:
  explicit HostTree(const TreeInput &in);

  PrefixTree view() const;
  const int32_t *covered() const { return covered_.data(); }
  /// The keys that each split of each node holds of a request, in order.
  std::vector<KeyRange> ranges_of(int32_t request) const;
  /// Those with keys.
  int32_t num_items() const;

private:
  PrefixTreeShape shape_;
  std::vector<TreeItem> items_;
  std::vector<TreeCoord> coords_;
  std::vector<int32_t> members_, covered_;
};

} // namespace assay
