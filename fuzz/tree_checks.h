// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/byte_reader.h"
#include "kernels/plan/host_tree.h"

namespace assay::fuzz {

/// Requests that begin with the same pages, and how a call wants them shared.
struct TreeCase {
  PrefixTreeShape shape;
  std::vector<int32_t> table, lens; // [batch, columns], [batch]
  int32_t columns = 0;

  TreeInput input() const { return {shape, table.data(), lens.data(), columns, nullptr}; }
};

/// Up to 40 requests, each fresh or with up to 255 pages of an earlier one in front of its own.
TreeCase decode_tree_case(ByteReader &in);

/// How the host's tree of the case differs from what the device planner writes on the executor:
/// they are the same function, byte for byte. Empty: in nothing.
std::string tree_difference(const TreeCase &c, const HostTree &host);

/// tree_violation (kernels/plan/tests/tree_audit.h) of the host's tree of the case, and
/// tree_difference.
std::string check_tree(const TreeCase &c);

} // namespace assay::fuzz
