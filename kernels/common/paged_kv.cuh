// SPDX-License-Identifier: Apache-2.0
// Where a token's K and V rows live.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/common/params.h"

namespace assay::ASSAY_TARGET {

/// n / divisor for 0 <= n < 2^31.
ASSAY_DEVICE uint32_t divide(uint32_t n, const FastDivisor &d) {
  return static_cast<uint32_t>((uint64_t{n} * d.magic) >> d.shift);
}

/// A token's place: page (its index in the row of the page table, or its id) and slot in the page.
struct TokenCoord {
  uint32_t page, slot;
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

  static ASSAY_DEVICE TokenCoord logical_coord(const PagedKvParams &params, int token) {
    const uint32_t page = divide(token, params.page_size);
    return {page, token - page * params.page_size.divisor};
  }

  /// From page index to page id: reads one page-table entry, whose page must hold a live token.
  ASSAY_DEVICE TokenCoord look_up(TokenCoord logical) const {
    const uint32_t page = logical.page;
    return {static_cast<uint32_t>(arch::global_load_readonly(table_ + page)), logical.slot};
  }

  /// The row of a token in K (kIsK) or V; `place` has the page id.
  template <bool kIsK>
  ASSAY_DEVICE const E *row(const PagedKvParams &params, TokenCoord coord) const {
    const uint64_t page = coord.page, slot = coord.slot;
    const uint64_t offset = kIsK ? page * params.k_page_bytes + slot * params.k_token_bytes
                                 : page * params.v_page_bytes + slot * params.v_token_bytes;
    return reinterpret_cast<const E *>(reinterpret_cast<const char *>(kIsK ? k_ : v_) + offset);
  }

  /// The row `tokens` slots behind `row`, in the same page.
  template <bool kIsK>
  static ASSAY_DEVICE const E *later_row(const PagedKvParams &params, const E *row, int tokens) {
    const uint64_t token_bytes = kIsK ? params.k_token_bytes : params.v_token_bytes;
    return reinterpret_cast<const E *>(reinterpret_cast<const char *>(row) + tokens * token_bytes);
  }

private:
  const int32_t *table_ = nullptr;
  const E *k_ = nullptr, *v_ = nullptr;
};

} // namespace assay::ASSAY_TARGET
