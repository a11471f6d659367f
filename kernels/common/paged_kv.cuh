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

/// One (row, kv head) of a paged cache. Offsets are 64-bit: pools exceed 2^31 elements.
///
/// The parameters are an argument of every call, not a member: a stored pointer to them would turn
/// each stride into a load from memory instead of a constant operand (measured: the copy of a tile
/// took 400 instructions instead of 100).
template <class E>
class PagedKv {
public:
  PagedKv() = default;
  ASSAY_DEVICE PagedKv(const PagedKvParams &params, int row, int kv_head)
      : table_(params.page_table + row * params.page_table_stride),
        k_(static_cast<const E *>(params.k) + kv_head * params.k_stride_head),
        v_(static_cast<const E *>(params.v) + kv_head * params.v_stride_head) {}

  /// Reads one page-table entry; `token` must be live.
  ASSAY_DEVICE TokenPlace locate(const PagedKvParams &params, int token) const {
    const uint32_t page = divide(token, params.page_size);
    return {arch::global_load_readonly(table_ + page),
            token - static_cast<int32_t>(page * params.page_size.divisor)};
  }

  /// The row of a token in K (kIsK) or V.
  template <bool kIsK>
  ASSAY_DEVICE const E *row(const PagedKvParams &params, TokenPlace place) const {
    return kIsK ? k_ + place.page * params.k_stride_page + place.slot * params.k_stride_token
                : v_ + place.page * params.v_stride_page + place.slot * params.v_stride_token;
  }

private:
  const int32_t *table_ = nullptr;
  const E *k_ = nullptr, *v_ = nullptr;
};

} // namespace assay::ASSAY_TARGET
