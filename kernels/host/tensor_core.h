// SPDX-License-Identifier: Apache-2.0
// What tensor cores keep of the products of 16-bit elements, by device.
#pragma once

namespace assay {

/// `block` products and the accumulator are summed at once, truncated `fraction_bits` below the
/// largest exponent (A1 in oracle/BOUNDS.md).
struct TensorCore {
  int block, fraction_bits;
};

/// sm_90: measured on an H100 and an H200 (kernels/arch/PRIMITIVES.md). The executor has the same.
inline constexpr TensorCore kHopperCore = {16, 25};
/// sm_80 and sm_89 take an m16n8k16 as two blocks. Figures are those of MMA-Sim (arXiv 2511.10909,
/// mmasim/simulator/nv.py of 16a01880); no test of ours has run there.
inline constexpr TensorCore kAmpereCore = {8, 24};
/// Volta's tensor cores keep the least of those in MMA-Sim. A larger block with as many bits
/// commits less: b products at once (b + 2) 2^-23, in blocks of 4 (b / 4) 6 2^-23.
inline constexpr TensorCore kLeastCore = {4, 23};

/// `capability`: 90 for 9.0; 0 where it is not known. sm_100 and sm_120 have no row, although
/// MMA-Sim says that they keep what sm_90 does: who declares that has scores replayed bit by bit,
/// and those bits were compared on sm_90 alone.
constexpr TensorCore tensor_core(int capability) {
  switch (capability) {
  case 90:
    return kHopperCore;
  case 80:
  case 89:
    return kAmpereCore;
  default:
    return kLeastCore;
  }
}

} // namespace assay
