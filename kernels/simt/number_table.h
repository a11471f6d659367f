// SPDX-License-Identifier: Apache-2.0
// Numbers too wide for a register: a kernel's 32-bit words are then handles into this table. What
// the parts mean is the business of the arithmetic (kernels/arch/simt/field.h).
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
  /// 16-bit handles live from a pack to the next use in the same warp: a ring of the newest ones,
  /// per warp, so that other warps cannot push them out.
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
