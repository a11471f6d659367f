// SPDX-License-Identifier: Apache-2.0
// Where a token's K and V rows live.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/common/params.h"

namespace assay::ASSAY_TARGET {

/// n / divisor for 0 <= n < 2^31.
ASSAY_DEVICE uint32_t divide(uint32_t n, const FastDivisor &d) {
  return d.magic == 0 ? n >> d.shift
                      : static_cast<uint32_t>((uint64_t{n} * d.magic) >> (31 + d.shift));
}

/// A token's physical place: page id and slot in the page.
struct TokenPlace {
  int32_t page, slot;
};

/// View of one (row, kv head) of a paged cache. Offsets are 64-bit: pools exceed 2^31 elements.
template <class E>
class PagedKv {
public:
  ASSAY_DEVICE PagedKv(const PagedKvParams &params, int row, int kv_head)
      : params_(params), table_(params.page_table + row * params.page_table_stride),
        k_(static_cast<const E *>(params.k) + kv_head * params.k_stride_head),
        v_(static_cast<const E *>(params.v) + kv_head * params.v_stride_head) {}

  /// Reads one page-table entry; `token` must be live.
  ASSAY_DEVICE TokenPlace locate(int token) const {
    const uint32_t page = divide(token, params_.page_size);
    return {arch::global_load_readonly(table_ + page),
            token - static_cast<int32_t>(page * params_.page_size.divisor)};
  }

  ASSAY_DEVICE const E *k_row(TokenPlace p) const {
    return k_ + p.page * params_.k_stride_page + p.slot * params_.k_stride_token;
  }
  ASSAY_DEVICE const E *v_row(TokenPlace p) const {
    return v_ + p.page * params_.v_stride_page + p.slot * params_.v_stride_token;
  }

private:
  const PagedKvParams &params_;
  const int32_t *table_;
  const E *k_, *v_;
};

} // namespace assay::ASSAY_TARGET
