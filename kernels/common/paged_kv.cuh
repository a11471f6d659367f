// SPDX-License-Identifier: Apache-2.0
// Where the K and V rows of a token are.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/common/params.h"

namespace assay::ASSAY_TARGET {

/// n / divisor for 0 <= n < 2^31.
ASSAY_DEVICE uint32_t divide(uint32_t n, const FastDivisor &d) {
  return static_cast<uint32_t>((uint64_t{n} * d.magic) >> d.shift);
}

/// Where a token is: a page, and a slot in the page. A logical coord has the index of the page in
/// its row of the page table; after the look-up a coord has the id of the page.
struct TokenCoord {
  uint32_t page, slot;
};

/// One (row, kv head) of a paged cache. Offsets have 64 bits, since pools exceed 2^31 elements.
///
/// Every call takes the parameters as an argument. With a pointer to them as a member each stride
/// would be a load from memory and no constant operand (measured: the copy of a tile took 400
/// instructions instead of 100).
template <class E>
class PagedKv {
public:
  PagedKv() = default;
  ASSAY_DEVICE PagedKv(const PagedKvParams &params, int row, int kv_head)
      : list_(list_of(params, row) +
              static_cast<uint32_t>(kv_head) * params.page_table_stride_head),
        k_(static_cast<const E *>(params.k) + kv_head * params.k_stride_head),
        v_(static_cast<const E *>(params.v) + kv_head * params.v_stride_head) {}

  static ASSAY_DEVICE TokenCoord logical_coord(const PagedKvParams &params, int token) {
    const uint32_t page = divide(token, params.page_size);
    return {page, token - page * params.page_size.divisor};
  }

  /// Turns the index of a page into its id. Reads one page-table entry, of a page that must hold a
  /// token of the row.
  ASSAY_DEVICE TokenCoord look_up(const PagedKvParams &params, TokenCoord logical) const {
    const int32_t *entry = params.page_table + (list_ + logical.page);
    return {static_cast<uint32_t>(arch::global_load_readonly(entry)), logical.slot};
  }

  /// The row of a token in K (kIsK) or V. `coord` has the id of the page.
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
  /// The entry of the page table at which the list of a row begins.
  static ASSAY_DEVICE uint32_t list_of(const PagedKvParams &params, int row) {
    const auto r = static_cast<uint32_t>(row);
    return params.page_indptr == nullptr
               ? r * params.page_table_stride
               : static_cast<uint32_t>(arch::global_load_readonly(params.page_indptr + r));
  }

  uint32_t list_ = 0; // an entry of at most 2^32: a pointer would take one register more
  const E *k_ = nullptr, *v_ = nullptr;
};

} // namespace assay::ASSAY_TARGET
