// SPDX-License-Identifier: Apache-2.0
// Numbers too wide for a register: the 32-bit words of a kernel are then handles of this table. The
// arithmetic says what the parts mean (kernels/arch/simt/field.h).
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace assay::simt {

struct WideNumber {
  uint64_t a, b, m, u;
};

struct NumberTable {
  /// The newest handles of 16 bits of a warp. A warp uses such a handle soon after it has packed
  /// it. Every warp has a ring of its own, so that other warps cannot push its handles out.
  struct Ring {
    static constexpr uint32_t kCapacity = 1u << 15;
    std::vector<uint32_t> handles; // kCapacity once used
    uint32_t next = 0;
  };

  std::vector<WideNumber> rows;
  std::unordered_map<uint32_t, uint32_t> constants; // bits of an fp32 literal -> handle
  std::array<Ring, 32> rings;                       // a block has at most 32 warps
};

} // namespace assay::simt
