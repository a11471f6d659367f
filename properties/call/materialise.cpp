// SPDX-License-Identifier: Apache-2.0
#include "properties/call/materialise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "properties/call/buffers.h"
#include "properties/call/element.h"
#include "properties/call/feature_arrays.h"
#include "properties/call/tensors.h"
#include "properties/case/hash.h"

namespace assay {
namespace {

/// What assay.h promises of the addresses of matrices, in bytes.
constexpr size_t kMatrixAlignment = 16;

/// Elements from the first to the last one of a strided [rows, heads, width] tensor.
int64_t extent(const View &v, int rows, int heads, int width) {
  return rows == 0 || heads == 0 ? 0 : v.at(rows - 1, heads - 1, width - 1) + 1;
}

/// A stride over one request or one head has no meaning; in half of the cases it is 0.
bool lone_pieces_are_0_apart(const Problem &p) { return hash_values(p.v.seed, 1u) % 2 == 0; }

/// `room`: rows that there is memory for, where those are more.
View add_rows(Tensors &t, const std::string &name, bool output, int rows, int heads, int width,
              int pad, bool heads_outermost, Dtype dtype, int tokens = 1, int room = 0) {
  room = std::max(rows, room);
  View v;
  v.size = element_size(dtype);
  v.tokens = tokens;
  if (!heads_outermost) v.head_stride = width + pad;
  v.token_stride = heads_outermost ? width + pad : heads * v.head_stride + pad;
  v.row_stride = tokens == 1 ? v.token_stride : tokens * v.token_stride + pad;
  if (heads_outermost) v.head_stride = std::max(1, room / tokens) * v.row_stride + pad;
  if (lone_pieces_are_0_apart(t.problem)) {
    if (rows == tokens) v.row_stride = 0;
    if (heads == 1) v.head_stride = 0;
  }
  // Where a lone request's stride is 0 more rows may end earlier.
  const int64_t size = std::max(extent(v, rows, heads, width), extent(v, room, heads, width));
  v.buffer =
      add_buffer(t, name, output, size, dtype, width > 1 ? kMatrixAlignment : kArrayAlignment);
  if (!output) return v;
  for (int r = 0; r < rows; ++r)
    for (int h = 0; h < heads; ++h)
      mark_live(t, v.buffer, v.size, v.at(r, h), width);
  return v;
}

void add_outputs(Tensors &t, int room = 0) {
  const Problem &p = t.problem;
  const int tokens = rows_between_batch_strides(p);
  t.o = add_rows(t, "out", true, t.rows(), t.heads(), p.head_dim, 8 * p.out_pad,
                 p.out_heads_outermost, p.dtype, tokens, room);
  if (p.has_lse)
    t.lse = add_rows(t, "lse", true, t.rows(), t.heads(), 1, p.lse_pad, p.lse_heads_outermost,
                     Dtype::kFp32, tokens, room);
}

/// Physical ids of `count` logical pages among `pool`.
std::vector<int> place(const Problem &p, int count, int pool, int salt) {
  std::vector<int> ids(pool);
  std::iota(ids.begin(), ids.end(), 0);
  if (p.placement == Placement::kReversed) std::reverse(ids.begin(), ids.end());
  if (p.placement == Placement::kShuffled)
    for (int i = pool - 1; i > 0; --i)
      std::swap(ids[i], ids[hash_values(p.placement_seed, salt, i) % (i + 1)]);
  if (p.placement == Placement::kExplicit && static_cast<int>(p.page_ids.size()) == count)
    ids = p.page_ids;
  ids.resize(count);
  return ids;
}

/// Fills the physical ids of a cache and returns the value owner (row, page) of each live page.
/// `least_pages` of the pool, the last of which nothing uses.
std::vector<std::vector<LogicalPage>> lay_out_pages(CacheView &c, const Problem &p, bool unshare,
                                                    int least_pages, int salt) {
  std::vector<std::vector<LogicalPage>> owner(c.rows);
  std::map<std::pair<LogicalPage, LogicalPage>, int> order;
  std::vector<std::vector<int>> logical(c.rows);
  for (int row = 0; row < c.rows; ++row) {
    int pages = (c.len[row] + c.page_size - 1) / c.page_size;
    for (int index = 0; index < pages; ++index) {
      LogicalPage page = canonical_page(p.sharing, c.page_size, row, index);
      LogicalPage user = unshare ? LogicalPage{row, index} : LogicalPage{0, 0};
      int next = static_cast<int>(order.size());
      logical[row].push_back(order.try_emplace({page, user}, next).first->second);
      owner[row].push_back(page);
    }
  }
  int count = static_cast<int>(order.size());
  c.pool_pages = std::max(count + p.spare_pages, least_pages);
  std::vector<int> ids = place(p, count, c.pool_pages, salt);
  c.physical.resize(c.rows);
  for (int row = 0; row < c.rows; ++row)
    for (int page : logical[row])
      c.physical[row].push_back(ids[page]);
  return owner;
}

void set_strides(CacheView &c, const Problem &p) {
  auto fill = [&](Layout layout, int pad, int64_t &page, int64_t &token, int64_t &head) {
    if (layout == Layout::kNhd) {
      head = p.head_dim + pad;
      token = p.num_kv_heads * head;
      page = c.page_size * token + pad;
    } else {
      token = p.head_dim + pad;
      head = c.page_size * token;
      page = p.num_kv_heads * head + pad;
    }
  };
  // Strides are multiples of 16 bytes.
  int step = 16 / c.size;
  fill(p.k_layout, step * p.k_pad, c.k_page, c.k_token, c.k_head);
  fill(p.v_layout, step * p.v_pad, c.v_page, c.v_token, c.v_head);
}

/// The first id whose offsets no longer fit into 32 bits, in elements of either stride. A multiple
/// of 16, so that the base pointer keeps its 256-byte alignment.
int first_page_of_huge_pool(const CacheView &c) {
  constexpr int64_t kOffset = int64_t{1} << 32;
  int64_t pages = kOffset / std::min(c.k_page, c.v_page) + 1;
  return static_cast<int>((pages + 15) / 16 * 16);
}

void add_table(Tensors &t, CacheView &c, int least_columns, const std::string &suffix) {
  const Problem &p = t.problem;
  int live = 0;
  for (const auto &row : c.physical)
    live = std::max(live, static_cast<int>(row.size()));
  // At least one column, and dead columns and gaps as the case says.
  c.max_pages = std::max({1, live + p.table_pad, least_columns});
  c.table_stride = c.max_pages + p.table_pad;
  size_t entries = c.rows == 0 ? 0 : (c.rows - 1) * c.table_stride + c.max_pages;
  c.table = add_buffer(t, "page_table" + suffix, false, entries, Dtype::kFp32);
  for (size_t i = 0; i < entries; ++i)
    t.set_element(c.table, 4, i,
                  static_cast<uint32_t>(poison_page(p.poison, c.first_page + c.pool_pages, i + 1)));
  for (int row = 0; row < c.rows; ++row)
    for (size_t j = 0; j < c.physical[row].size(); ++j) {
      t.set_element(c.table, 4, row * c.table_stride + j, c.first_page + c.physical[row][j]);
      mark_live(t, c.table, 4, row * c.table_stride + j, 1);
    }
}

CacheView add_cache(Tensors &t, const std::vector<int> &lens, int page_size,
                    const MaterialiseOptions &options, int level, const std::string &suffix) {
  const Problem &p = t.problem;
  const bool contents = options.cache_contents;
  CacheView c;
  c.size = element_size(kv_dtype(p));
  c.rows = static_cast<int>(lens.size());
  c.len = lens;
  c.page_size = page_size;
  const size_t cache = t.caches.size();
  const auto least = [&](const std::vector<int> &list) {
    return cache < list.size() ? list[cache] : 0;
  };
  auto owner = lay_out_pages(c, p, options.unshare, least(options.least_pages), level);
  set_strides(c, p);
  if (p.huge_pool) c.first_page = first_page_of_huge_pool(c);
  const int64_t pages = contents ? std::max(1, c.pool_pages) : 0;
  c.k = add_buffer(t, "k" + suffix, false, pages * c.k_page, kv_dtype(p), kMatrixAlignment);
  c.v = add_buffer(t, "v" + suffix, false, pages * c.v_page, kv_dtype(p), kMatrixAlignment);
  const TensorValues keys = key_values(p), values = value_values(p);
  for (int row = 0; row < (contents ? c.rows : 0); ++row)
    for (int token = 0; token < c.len[row]; ++token) {
      LogicalPage page = owner[row][token / page_size];
      int id = page.index * page_size + token % page_size;
      for (int h = 0; h < p.num_kv_heads; ++h) {
        const LogicalIndex at{level * 1024 + page.row, h, id, 0};
        t.set_row(c.k, c.size, c.k_at(row, token, h, 0), {keys, at});
        t.set_row(c.v, c.size, c.v_at(row, token, h, 0), {values, at});
        mark_live(t, c.k, c.size, c.k_at(row, token, h, 0), p.head_dim);
        mark_live(t, c.v, c.size, c.v_at(row, token, h, 0), p.head_dim);
      }
    }
  add_table(t, c, least(options.least_columns), suffix);
  c.lens = add_ints(t, "seq_lens" + suffix, lens);
  return c;
}

void fill_attention(Tensors &t, const MaterialiseOptions &options) {
  const Problem &p = t.problem;
  t.q = add_rows(t, "q", false, t.rows(), t.heads(), p.head_dim, 8 * p.q_pad, p.q_heads_outermost,
                 p.dtype, rows_between_batch_strides(p), options.least_rows);
  for (int r = 0; r < t.rows(); ++r)
    for (int h = 0; h < t.heads(); ++h) {
      t.set_row(t.q.buffer, t.q.size, t.q.at(r, h), RowValues::query(p, {r, h, 0, 0}));
      mark_live(t, t.q.buffer, t.q.size, t.q.at(r, h), p.head_dim);
    }
  if (p.family == Family::kPaged) add_feature_arrays(t);
  if (p.family == Family::kPaged) {
    t.caches.push_back(add_cache(t, p.seq_lens, p.page_size, options, 0, ""));
  } else {
    for (size_t l = 0; l < p.levels.size(); ++l) {
      const CascadeLevel &level = p.levels[l];
      std::string suffix = "." + std::to_string(l);
      t.caches.push_back(
          add_cache(t, level.lens, level.page_size, options, static_cast<int>(l), suffix));
      std::vector<int> indptr = {level.first};
      for (int count : level.requests)
        indptr.push_back(indptr.back() + count);
      t.caches.back().indptr = add_ints(t, "segment_indptr" + suffix, indptr);
    }
  }
  add_outputs(t, options.least_rows);
}

/// Writes state `index` of a merge input from the logical (row, state).
void fill_state(Tensors &t, const View &o, const View &lse, int index, int row, int state,
                int states) {
  const Problem &p = t.problem;
  for (int h = 0; h < t.heads(); ++h) {
    float l = state_lse(p, {row, h, state, 0}, states);
    t.set_bits(lse, index, h, 0, to_bits(Dtype::kFp32, l));
    mark_live(t, lse.buffer, 4, lse.at(index, h), 1);
    // The o of an empty state is dead: it stays poison.
    if (std::isinf(l)) continue;
    t.set_row(o.buffer, o.size, o.at(index, h), RowValues::value(p, {row, h, state, 0}));
    mark_live(t, o.buffer, o.size, o.at(index, h), p.head_dim);
  }
}

void fill_merge_state(Tensors &t) {
  const Problem &p = t.problem;
  for (int side = 0; side < 2; ++side) {
    std::string name = side == 0 ? "_a" : "_b";
    // The padding of the output applies to inputs as well: in place needs equal strides. Where it
    // does not, half of the second states lie otherwise than the first.
    const int apart = side == 1 && p.in_place != InPlace::kOverB && p.v.seed % 2 == 1;
    t.in_o[side] = add_rows(t, "o" + name, false, p.batch, t.heads(), p.head_dim,
                            8 * (p.out_pad + apart), p.q_heads_outermost, p.dtype);
    t.in_lse[side] = add_rows(t, "lse" + name, false, p.batch, t.heads(), 1, p.lse_pad + apart,
                              p.lse_heads_outermost, Dtype::kFp32);
    for (int r = 0; r < p.batch; ++r)
      fill_state(t, t.in_o[side], t.in_lse[side], r, r, side, 2);
  }
  if (p.in_place == InPlace::kNo) return add_outputs(t);
  int side = p.in_place == InPlace::kOverA ? 0 : 1;
  for (View *view : {&t.in_o[side], &t.in_lse[side]}) {
    if (view == &t.in_lse[side] && !p.has_lse) continue;
    t.buffers[view->buffer].output = true;
    int width = view == &t.in_o[side] ? p.head_dim : 1;
    for (int r = 0; r < p.batch; ++r)
      for (int h = 0; h < t.heads(); ++h)
        mark_live(t, view->buffer, view->size, view->at(r, h), width);
  }
  t.o = t.in_o[side];
  if (p.has_lse) t.lse = t.in_lse[side];
}

void fill_merge_states(Tensors &t) {
  const Problem &p = t.problem;
  t.first_state = {0};
  for (int r = 0; r < p.batch; ++r)
    t.first_state.push_back(t.first_state.back() + states_of_row(p, r));
  int total = t.first_state.back();
  t.in_o[0] = add_rows(t, "o_in", false, total, t.heads(), p.head_dim, 8 * p.out_pad,
                       p.q_heads_outermost, p.dtype);
  t.in_lse[0] = add_rows(t, "lse_in", false, total, t.heads(), 1, p.lse_pad, p.lse_heads_outermost,
                         Dtype::kFp32);
  for (int r = 0; r < p.batch; ++r) {
    int count = t.first_state[r + 1] - t.first_state[r];
    for (int s = 0; s < count; ++s)
      fill_state(t, t.in_o[0], t.in_lse[0], t.first_state[r] + s, r, s, count);
  }
  if (p.ragged) t.indptr = add_ints(t, "indptr", t.first_state);
  add_outputs(t);
}

} // namespace

Tensors materialise(const Problem &p, const MaterialiseOptions &options) {
  Tensors t;
  t.problem = p;
  switch (p.family) {
  case Family::kPaged:
  case Family::kCascade:
    fill_attention(t, options);
    break;
  case Family::kMergeState:
    fill_merge_state(t);
    break;
  case Family::kMergeStates:
    fill_merge_states(t);
    break;
  }
  return t;
}

} // namespace assay
