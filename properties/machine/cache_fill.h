// SPDX-License-Identifier: Apache-2.0
// The contents of a paged cache of a case, a page at a time: one text for the host and a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "properties/call/row_values.h"
#include "properties/call/tensors.h"

namespace assay {

/// The cache row whose values a page of the pool holds; a page without tokens holds nobody's.
struct PageOwner {
  int32_t row, index;
  int32_t tokens; ///< that carry values: the longest of its users'
};

/// K or V of one cache.
struct CacheFill {
  TensorValues values;
  int32_t heads, page_size, element_bytes;
  int64_t page_stride, token_stride, head_stride; ///< in elements
  uint32_t poison;                                ///< bits of every other element
  const PageOwner *owners;                        ///< [pages], where the cache lies
  int64_t pages;
  std::byte *to;

  int64_t elements() const { return pages * page_stride; }
};

ASSAY_VALUES inline void store_bits(const CacheFill &fill, int64_t at, uint32_t bits) {
  if (fill.element_bytes == 1)
    reinterpret_cast<uint8_t *>(fill.to)[at] = static_cast<uint8_t>(bits);
  else
    reinterpret_cast<uint16_t *>(fill.to)[at] = static_cast<uint16_t>(bits);
}

/// Elements lane, lane + lanes, ... of one token's head.
ASSAY_VALUES inline void fill_token(const CacheFill &fill, int64_t page, int token, int head,
                                    int lane, int lanes) {
  const PageOwner owner = fill.owners[page];
  if (token >= owner.tokens) return;
  const RowValues row(fill.values, {owner.row, head, owner.index * fill.page_size + token, 0});
  const int64_t at = page * fill.page_stride + token * fill.token_stride + head * fill.head_stride;
  for (int dim = lane; dim < fill.values.head_dim; dim += lanes)
    store_bits(fill, at + dim, row.bits(dim));
}

/// [pool pages] of a paged case.
std::vector<PageOwner> page_owners(const Problem &p, const CacheView &cache);

/// Keys (else values) of the cache, without a place.
CacheFill cache_fill(const Problem &p, const CacheView &cache, bool keys);

} // namespace assay
