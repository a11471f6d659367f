// SPDX-License-Identifier: Apache-2.0
// The (row, head) that a merge works on.
#pragma once

#include "kernels/arch/target.cuh"

namespace assay::ASSAY_TARGET {

struct RowHead {
  int64_t row, head;

  /// The index-th (row, head). An index below 2^32 is divided in 32 bits: a division of 64 bits
  /// takes as many instructions as the merge of three states.
  static ASSAY_DEVICE RowHead of(int64_t index, int32_t num_heads) {
    if (num_heads == 1) return {index, 0};
    if (index >> 32 == 0) {
      const auto i = static_cast<uint32_t>(index), heads = static_cast<uint32_t>(num_heads);
      return {i / heads, i % heads};
    }
    return {index / num_heads, index % num_heads};
  }
};

} // namespace assay::ASSAY_TARGET
