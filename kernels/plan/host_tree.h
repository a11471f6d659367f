// SPDX-License-Identifier: Apache-2.0
// The finder of prefix trees on the host, for declarations, tools and tests.
#pragma once

#include "kernels/plan/find_prefix_tree.h"

#include <vector>

namespace assay {

struct KeyRange {
  int32_t begin, end;
};

/// A tree in host memory, with the bytes that the device writes.
class HostTree {
public:
  explicit HostTree(const TreeInput &in);

  PrefixTree view() const;
  const int32_t *covered() const { return covered_.data(); }
  /// The keys that nodes hold of a request, split by split, from the root on.
  std::vector<KeyRange> ranges_of(int32_t request) const;
  /// How many items have keys.
  int32_t num_items() const;

private:
  PrefixTreeShape shape_;
  std::vector<TreeItem> items_;
  std::vector<TreeCoord> coords_;
  std::vector<int32_t> members_, covered_;
};

} // namespace assay
