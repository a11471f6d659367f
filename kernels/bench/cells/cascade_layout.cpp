// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/cascade_layout.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>

namespace assay::bench {
namespace {

assay_dtype abi_dtype(KvDtype dtype) {
  return dtype == KvDtype::kBf16 ? ASSAY_BF16 : dtype == KvDtype::kE4m3 ? ASSAY_E4M3 : ASSAY_E5M2;
}

} // namespace

CascadeLayout::CascadeLayout(const CascadeCell &cell, int sets)
    : cell_(cell), sets_(sets),
      page_elements_(int64_t{cell.page_size} * cell.num_kv_heads * cell.head_dim) {
  for (const CascadeLevel &level : cell.levels) {
    Level to{.segments = level.segments,
             .max_pages = (level.tokens + cell.page_size - 1) / cell.page_size};
    to.lens = integers_.size();
    integers_.insert(integers_.end(), level.segments, level.tokens);
    to.indptr = integers_.size();
    for (int s = 0; s <= level.segments; ++s)
      integers_.push_back(cell.batch / level.segments * s);
    pages_per_set_ += int64_t{to.segments} * to.max_pages;
    levels_.push_back(to);
  }
  add_tables();
  if (has_flat()) add_flat_tables();
}

bool CascadeLayout::has_flat() const {
  return std::all_of(cell_.levels.begin(), cell_.levels.end() - 1, [&](const CascadeLevel &level) {
    return level.tokens % cell_.page_size == 0;
  });
}

void CascadeLayout::add_flat_tables() {
  int32_t tokens = 0;
  for (const CascadeLevel &level : cell_.levels)
    tokens += level.tokens;
  for (const Level &level : levels_)
    flat_pages_ += level.max_pages;
  flat_lens_ = integers_.size();
  integers_.insert(integers_.end(), cell_.batch, tokens);
  flat_tables_ = integers_.size();
  integers_.reserve(integers_.size() + size_t(sets_) * cell_.batch * flat_pages_);
  for (int set = 0; set < sets_; ++set)
    for (int r = 0; r < cell_.batch; ++r)
      for (const Level &level : levels_) {
        const int segment = r / (cell_.batch / level.segments);
        const auto row = integers_.begin() + static_cast<std::ptrdiff_t>(level.tables) +
                         (int64_t{set} * level.segments + segment) * level.max_pages;
        integers_.insert(integers_.end(), row, row + level.max_pages);
      }
}

assay_paged_params CascadeLayout::flat_params(assay_target target, int set, const void *pool,
                                              const int32_t *integers) const {
  const assay_cascade_params from = params(target);
  assay_paged_params p = assay_paged_params_init();
  p.target = target;
  p.dtype = from.dtype;
  p.kv_dtype = abi_dtype(cell_.kv_dtype);
  p.batch = from.batch;
  p.q_len = 1;
  p.num_qo_heads = from.num_qo_heads;
  p.num_kv_heads = from.num_kv_heads;
  p.head_dim = from.head_dim;
  p.sm_scale = from.sm_scale;
  p.q_stride_batch = p.out_stride_batch = from.q_stride_batch;
  p.q_stride_head = p.out_stride_head = from.q_stride_head;
  p.lse_stride_batch = from.lse_stride_batch;
  p.lse_stride_head = from.lse_stride_head;
  p.kv = levels(set, pool, integers).front().kv;
  p.kv.page_table = integers + flat_tables_ + int64_t{set} * cell_.batch * flat_pages_;
  p.kv.seq_lens = integers + flat_lens_;
  p.kv.page_table_stride = p.kv.max_pages = flat_pages_;
  p.kv.rows = cell_.batch;
  return p;
}

void CascadeLayout::add_tables() {
  for (Level &level : levels_) {
    level.tables = integers_.size();
    integers_.resize(integers_.size() + size_t(sets_) * level.segments * level.max_pages);
  }
  std::mt19937_64 rng(7);
  std::vector<int32_t> ids(pages_per_set_);
  for (int set = 0; set < sets_; ++set) {
    std::iota(ids.begin(), ids.end(), static_cast<int32_t>(set * pages_per_set_));
    std::shuffle(ids.begin(), ids.end(), rng);
    auto next = ids.begin();
    for (const Level &level : levels_) {
      const int64_t pages = int64_t{level.segments} * level.max_pages;
      std::copy_n(next, pages, integers_.begin() + level.tables + set * pages);
      next += pages;
    }
  }
}

std::vector<assay_cascade_level> CascadeLayout::levels(int set, const void *pool,
                                                       const int32_t *integers) const {
  std::vector<assay_cascade_level> result;
  for (const Level &from : levels_) {
    assay_cascade_level level{};
    level.segment_indptr = integers + from.indptr;
    assay_paged_kv &kv = level.kv;
    kv.k = pool;
    kv.v = static_cast<const std::byte *>(pool) + v_at();
    kv.k_stride_page = kv.v_stride_page = page_elements_;
    kv.k_stride_token = kv.v_stride_token = int64_t{cell_.num_kv_heads} * cell_.head_dim;
    kv.k_stride_head = kv.v_stride_head = cell_.head_dim;
    kv.page_table = integers + from.tables + int64_t{set} * from.segments * from.max_pages;
    kv.seq_lens = integers + from.lens;
    kv.page_table_stride = kv.max_pages = from.max_pages;
    kv.rows = from.segments;
    kv.page_size = cell_.page_size;
    result.push_back(level);
  }
  return result;
}

assay_cascade_params CascadeLayout::params(assay_target target) const {
  assay_cascade_params p{};
  p.struct_size = sizeof p;
  p.target = target;
  p.dtype = ASSAY_BF16;
  p.batch = cell_.batch;
  p.num_qo_heads = cell_.num_qo_heads;
  p.num_kv_heads = cell_.num_kv_heads;
  p.head_dim = cell_.head_dim;
  p.sm_scale = 1.0f / std::sqrt(static_cast<float>(cell_.head_dim));
  p.num_levels = static_cast<int32_t>(levels_.size());
  p.q_stride_batch = p.out_stride_batch = int64_t{cell_.num_qo_heads} * cell_.head_dim;
  p.q_stride_head = p.out_stride_head = cell_.head_dim;
  p.lse_stride_batch = cell_.num_qo_heads;
  p.lse_stride_head = 1;
  return p;
}

} // namespace assay::bench
