// SPDX-License-Identifier: Apache-2.0
#include "properties/machine/cache_fill.h"

#include <algorithm>

namespace assay {

std::vector<PageOwner> page_owners(const Problem &p, const CacheView &cache) {
  std::vector<PageOwner> owners(static_cast<size_t>(std::max(1, cache.pool_pages)),
                                PageOwner{0, 0, 0});
  for (int row = 0; row < cache.rows; ++row) {
    const auto &pages = cache.physical[static_cast<size_t>(row)];
    for (size_t index = 0; index < pages.size(); ++index) {
      const int at = static_cast<int>(index);
      const LogicalPage owner = canonical_page(p.sharing, cache.page_size, row, at);
      const int left = cache.len[static_cast<size_t>(row)] - at * cache.page_size;
      PageOwner &page = owners[static_cast<size_t>(pages[index])];
      page = {owner.row, owner.index, std::max(page.tokens, std::min(left, cache.page_size))};
    }
  }
  return owners;
}

CacheFill cache_fill(const Problem &p, const CacheView &cache, bool keys) {
  CacheFill fill{};
  fill.values = keys ? key_values(p) : value_values(p);
  fill.heads = p.num_kv_heads;
  fill.page_size = cache.page_size;
  fill.element_bytes = cache.size;
  fill.page_stride = keys ? cache.k_page : cache.v_page;
  fill.token_stride = keys ? cache.k_token : cache.v_token;
  fill.head_stride = keys ? cache.k_head : cache.v_head;
  fill.poison = poison_bits(p.poison, kv_dtype(p), keys ? 1 : 2);
  fill.pages = std::max(1, cache.pool_pages);
  return fill;
}

} // namespace assay
