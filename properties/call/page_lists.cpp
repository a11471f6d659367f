// SPDX-License-Identifier: Apache-2.0
#include "properties/call/page_lists.h"

#include <algorithm>

#include "properties/call/buffers.h"
#include "properties/call/values.h"

namespace assay {
namespace {

int pages_of(const CacheView &c, int row) { return static_cast<int>(c.physical[row].size()); }

/// The page of kv head `head` that holds what page `page` of the table does.
int page_of_head(const CacheView &c, int page, int head) { return (page + head) % c.pool_pages; }

/// Entries of all lists of one kv head.
int64_t entries_of(const CacheView &c) { return c.list_begin.back(); }

void write_lists(Tensors &t, CacheView &c, int heads) {
  const int64_t entries = entries_of(c);
  c.table =
      add_buffer(t, "page_indices", false, static_cast<size_t>(heads * entries), Dtype::kFp32);
  for (int64_t i = 0; i < heads * entries; ++i)
    t.set_element(c.table, 4, i,
                  static_cast<uint32_t>(poison_page(t.problem.poison, c.first_page + c.pool_pages,
                                                    static_cast<uint64_t>(i) + 1)));
  for (int head = 0; head < heads; ++head)
    for (int row = 0; row < c.rows; ++row)
      for (int j = 0; j < pages_of(c, row); ++j) {
        const int64_t at = head * entries + c.list_begin[static_cast<size_t>(row)] + j;
        const int page =
            page_of_head(c, c.physical[static_cast<size_t>(row)][static_cast<size_t>(j)], head);
        t.set_element(c.table, 4, at, static_cast<uint32_t>(c.first_page + page));
        mark_live(t, c.table, 4, at, 1);
      }
}

void put_into_lists(Tensors &t, CacheView &c) {
  c.list_begin.assign(1, static_cast<int32_t>(t.problem.placement_seed % 3)); // need not begin at 0
  // No row has more entries than max_pages, which stays that of the table: splits may follow it.
  for (int row = 0; row < c.rows; ++row)
    c.list_begin.push_back(c.list_begin.back() + std::min(pages_of(c, row) + row % 3, c.max_pages));
  c.lists = add_ints(t, "page_indptr", c.list_begin);
  write_lists(t, c, 1);
}

/// Moves the rows of K or V of each head to the pages that the head has them in.
void move_heads(Buffer &pool, const CacheView &c, const Problem &p, int64_t page_stride,
                int64_t token_stride, int64_t head_stride) {
  const Buffer from = pool;
  const auto bytes = static_cast<int64_t>(p.head_dim) * c.size;
  const auto copy = [&](const auto &source, auto &to, int64_t at, int64_t target) {
    std::copy_n(source.begin() + at, bytes, to.begin() + target);
  };
  for (int page = 0; page < c.pool_pages; ++page)
    for (int slot = 0; slot < c.page_size; ++slot)
      for (int head = 1; head < p.num_kv_heads; ++head) {
        const int64_t in_page = slot * token_stride + head * head_stride;
        const int64_t at = (page * page_stride + in_page) * c.size;
        const int64_t target = (page_of_head(c, page, head) * page_stride + in_page) * c.size;
        copy(from.bytes, pool.bytes, at, target);
        copy(from.live, pool.live, at, target);
      }
}

} // namespace

void put_pages_into_lists(Tensors &t) {
  for (CacheView &c : t.caches)
    put_into_lists(t, c);
}

void give_heads_their_lists(Tensors &t) {
  for (CacheView &c : t.caches) {
    write_lists(t, c, t.problem.num_kv_heads);
    c.table_head = entries_of(c);
    move_heads(t.buffers[static_cast<size_t>(c.k)], c, t.problem, c.k_page, c.k_token, c.k_head);
    move_heads(t.buffers[static_cast<size_t>(c.v)], c, t.problem, c.v_page, c.v_token, c.v_head);
  }
}

} // namespace assay
