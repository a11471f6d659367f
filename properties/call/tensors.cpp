// SPDX-License-Identifier: Apache-2.0
#include "properties/call/tensors.h"
#include "properties/call/element.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace assay {

int64_t CacheView::k_at(int row, int token, int head, int dim) const {
  return physical[row][token / page_size] * k_page + (token % page_size) * k_token + head * k_head +
         dim;
}
int64_t CacheView::v_at(int row, int token, int head, int dim) const {
  return physical[row][token / page_size] * v_page + (token % page_size) * v_token + head * v_head +
         dim;
}

uint32_t Tensors::element(int buffer, int size, int64_t index) const {
  const std::byte *at = buffers[buffer].bytes.data() + index * size;
  uint32_t bits = 0;
  // The sizes are known to the compiler, because this is called for every element of every case.
  if (size == 2)
    std::memcpy(&bits, at, 2);
  else if (size == 1)
    std::memcpy(&bits, at, 1);
  else
    std::memcpy(&bits, at, 4);
  return bits;
}

void Tensors::set_element(int buffer, int size, int64_t index, uint32_t bits) {
  std::byte *at = buffers[buffer].bytes.data() + index * size;
  if (size == 2)
    std::memcpy(at, &bits, 2);
  else if (size == 1)
    std::memcpy(at, &bits, 1);
  else
    std::memcpy(at, &bits, 4);
}

void Tensors::set_row(int buffer, int size, int64_t index, const RowValues &values) {
  values.write(buffers[buffer].bytes.data() + index * size, size);
}

uint32_t Tensors::bits(const View &view, int row, int head, int i) const {
  return element(view.buffer, view.size, view.at(row, head, i));
}
void Tensors::set_bits(const View &view, int row, int head, int i, uint32_t bits) {
  set_element(view.buffer, view.size, view.at(row, head, i), bits);
}
float Tensors::value(const View &view, int row, int head, int i) const {
  Dtype dtype = view.size == 4 ? Dtype::kFp32 : problem.dtype;
  return from_bits(dtype, bits(view, row, head, i));
}

float Tensors::scalar(int buffer, int i) const {
  return from_bits(Dtype::kFp32, element(buffer, 4, i));
}
void Tensors::set_scalar(int buffer, int i, float value) {
  set_element(buffer, 4, i, to_bits(Dtype::kFp32, value));
}
float Tensors::key_scale(int kv_head) const {
  if (k_scale < 0) return 1.0f;
  return scalar(k_scale, problem.k_scale == ScaleLayout::kHead ? kv_head : 0);
}
float Tensors::value_scale(int kv_head) const {
  if (v_scale < 0) return 1.0f;
  return scalar(v_scale, problem.v_scale == ScaleLayout::kHead ? kv_head : 0);
}
float Tensors::sink(int head) const {
  return sinks < 0 ? -std::numeric_limits<float>::infinity() : scalar(sinks, head);
}

uint32_t Tensors::key(int cache, int row, int token, int head, int dim) const {
  const CacheView &c = caches[cache];
  return element(c.k, c.size, c.k_at(row, token, head, dim));
}
uint32_t Tensors::val(int cache, int row, int token, int head, int dim) const {
  const CacheView &c = caches[cache];
  return element(c.v, c.size, c.v_at(row, token, head, dim));
}
void Tensors::set_key(int cache, int row, int token, int head, int dim, uint32_t bits) {
  const CacheView &c = caches[cache];
  set_element(c.k, c.size, c.k_at(row, token, head, dim), bits);
}
void Tensors::set_val(int cache, int row, int token, int head, int dim, uint32_t bits) {
  const CacheView &c = caches[cache];
  set_element(c.v, c.size, c.v_at(row, token, head, dim), bits);
}

float Tensors::key_value(int cache, int row, int token, int head, int dim) const {
  return from_bits(kv_dtype(problem), key(cache, row, token, head, dim));
}
float Tensors::val_value(int cache, int row, int token, int head, int dim) const {
  return from_bits(kv_dtype(problem), val(cache, row, token, head, dim));
}

namespace {

/// head_dim elements from one buffer to another.
void copy_row(Tensors &to, int to_buffer, int64_t to_index, const Tensors &from, int buffer,
              int64_t index, int size) {
  std::memcpy(to.buffers[to_buffer].bytes.data() + to_index * size,
              from.buffers[buffer].bytes.data() + index * size,
              static_cast<size_t>(to.problem.head_dim) * size);
}

} // namespace

void copy_query(Tensors &to, int to_row, int to_head, const Tensors &from, int row, int head) {
  copy_row(to, to.q.buffer, to.q.at(to_row, to_head), from, from.q.buffer, from.q.at(row, head),
           to.q.size);
}

void copy_keys(Tensors &to, int to_cache, int to_row, int to_token, int to_head,
               const Tensors &from, int cache, int row, int token, int head) {
  const CacheView &c = to.caches[to_cache], &o = from.caches[cache];
  copy_row(to, c.k, c.k_at(to_row, to_token, to_head, 0), from, o.k, o.k_at(row, token, head, 0),
           c.size);
  copy_row(to, c.v, c.v_at(to_row, to_token, to_head, 0), from, o.v, o.v_at(row, token, head, 0),
           c.size);
}

std::vector<ByteRange> late_bytes(const Tensors &t) {
  std::vector<ByteRange> late = {{t.q.buffer, 0, t.buffers[t.q.buffer].bytes.size()}};
  for (size_t cache = 0; cache < t.caches.size(); ++cache) {
    const CacheView &c = t.caches[cache];
    const auto place = [&](int row, int token) {
      return std::pair(c.physical[row][token / c.page_size], token % c.page_size);
    };
    std::set<std::pair<int, int>> older;
    for (int row = 0; row < c.rows; ++row)
      for (int token = 0; token < c.len[row] - t.problem.q_len; ++token)
        older.insert(place(row, token));
    const size_t bytes = static_cast<size_t>(t.problem.head_dim) * c.size;
    for (int row = 0; row < c.rows; ++row)
      for (int token = std::max(0, c.len[row] - t.problem.q_len); token < c.len[row]; ++token) {
        if (older.count(place(row, token)) != 0) continue;
        for (int head = 0; head < t.problem.num_kv_heads; ++head) {
          late.push_back({c.k, static_cast<size_t>(c.k_at(row, token, head, 0)) * c.size, bytes});
          late.push_back({c.v, static_cast<size_t>(c.v_at(row, token, head, 0)) * c.size, bytes});
        }
      }
  }
  return late;
}

void copy_features(Tensors &to, const Tensors &from, int kv_heads_apart) {
  const Problem &p = from.problem;
  int group = p.group_size, heads = from.heads();
  auto rotate = [](Tensors &a, int buffer, const Tensors &b, int source, int count, int apart) {
    for (int i = 0; buffer >= 0 && i < count; ++i)
      a.set_scalar(buffer, (i + apart) % count, b.scalar(source, i));
  };
  auto scales = [&](ScaleLayout layout) {
    return layout == ScaleLayout::kHead ? p.num_kv_heads : 1;
  };
  rotate(to, to.k_scale, from, from.k_scale, scales(p.k_scale), kv_heads_apart);
  rotate(to, to.v_scale, from, from.v_scale, scales(p.v_scale), kv_heads_apart);
  rotate(to, to.slopes, from, from.slopes, heads, kv_heads_apart * group);
  rotate(to, to.sinks, from, from.sinks, heads, kv_heads_apart * group);
}

} // namespace assay
