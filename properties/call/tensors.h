// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/abi/plugin.h"
#include "properties/call/values.h"
#include "properties/case/query_rows.h"

namespace assay {

/// One host buffer of a call. `live` has one entry per byte: for an input, whether it carries a
/// value; for an output, whether the call must write it. Everything else is poison.
struct Buffer {
  std::string name;
  bool output = false;
  std::vector<std::byte> bytes;
  std::vector<uint8_t> live;
  size_t offset = 0; ///< its address behind a multiple of 256
};

/// [row, head, element] inside a buffer; strides in elements of `size` bytes. Of query tensors
/// `tokens` rows lie a token stride apart, and the next ones begin a row stride further on.
struct View {
  int buffer = -1;
  int size = 4;
  int tokens = 1;
  int64_t row_stride = 0, token_stride = 0, head_stride = 0;
  int64_t at(int row, int head, int i = 0) const {
    return row / tokens * row_stride + row % tokens * token_stride + head * head_stride + i;
  }
};

/// A paged cache: the cache of a paged call or one level of a cascade.
struct CacheView {
  int k = -1, v = -1, table = -1, lens = -1, indptr = -1;
  int size = 2;
  int64_t k_page = 0, k_token = 0, k_head = 0;
  int64_t v_page = 0, v_token = 0, v_head = 0;
  int64_t table_stride = 0, table_head = 0; ///< of page_table, between rows and kv heads
  int lists = -1;                           ///< page_indptr, where there are lists
  std::vector<int> list_begin;              ///< what it holds
  int first_page = 0; ///< id of the pool's first page: the pool's base pointer lies that far below
  int rows = 0, max_pages = 0, page_size = 1, pool_pages = 0;
  std::vector<int> len; ///< keys of each row
  std::vector<std::vector<int>>
      physical; ///< physical page of each live page of a row, less first_page
  /// Where the page list of a row begins in page_table.
  int64_t list_at(int row) const {
    return list_begin.empty() ? row * table_stride : list_begin[static_cast<size_t>(row)];
  }
  int64_t k_at(int row, int token, int head, int dim) const;
  int64_t v_at(int row, int token, int head, int dim) const;
};

/// What a handle of ASSAY_FIELD61 stands for (kernels/abi/assay.h).
struct FieldNumber {
  uint64_t a, b, m, u;
};

/// An array that a feature of paged attention adds, and how the call gets it.
struct FeatureArray {
  int buffer;
  void (*pass)(assay_paged_params &to, const void *array);
};

/// All memory of one call, on the host, in the layout of the case.
struct Tensors {
  Problem problem;
  std::vector<Buffer> buffers;
  View q, o, lse; ///< lse.buffer is -1 when the case has none
  int k_scale = -1, v_scale = -1, slopes = -1, sinks = -1; ///< fp32 vectors; -1: none
  std::vector<FeatureArray> feature_arrays;                ///< those and others
  std::vector<CacheView> caches;                           ///< one, or one per cascade level
  std::array<View, 2> in_o, in_lse; ///< merge_state: a, b; merge_states: all states in [0]
  int indptr = -1;                  ///< merge_states, ragged
  std::vector<int> first_state;     ///< merge_states: [rows + 1]
  /// Not empty: the call's dtype is ASSAY_FIELD61, and handles index this. A run adds to it.
  std::vector<FieldNumber> numbers;

  int rows() const { return query_rows(problem); } ///< rows of q, o, lse
  int heads() const { return problem.num_qo_heads(); }

  uint32_t bits(const View &view, int row, int head, int i = 0) const;
  void set_bits(const View &view, int row, int head, int i, uint32_t bits);
  float value(const View &view, int row, int head, int i = 0) const;
  uint32_t element(int buffer, int size, int64_t index) const;
  void set_element(int buffer, int size, int64_t index, uint32_t bits);
  /// The row of head_dim elements that begins at `index`.
  void set_row(int buffer, int size, int64_t index, const RowValues &values);

  float scalar(int buffer, int i) const; ///< element of an fp32 vector
  void set_scalar(int buffer, int i, float value);
  /// Scales of a kv head; 1 when the case has none.
  float key_scale(int kv_head) const;
  float value_scale(int kv_head) const;
  /// Logit of a query head's sink, natural base; -inf when there is none.
  float sink(int head) const;

  uint32_t key(int cache, int row, int token, int head, int dim) const;
  uint32_t val(int cache, int row, int token, int head, int dim) const;
  void set_key(int cache, int row, int token, int head, int dim, uint32_t bits);
  void set_val(int cache, int row, int token, int head, int dim, uint32_t bits);

  float key_value(int cache, int row, int token, int head, int dim) const; ///< unscaled
  float val_value(int cache, int row, int token, int head, int dim) const;

  float out_o(int row, int head, int dim) const { return value(o, row, head, dim); }
  float out_lse(int row, int head) const { return value(lse, row, head); }
};

/// Bytes [offset, offset + bytes) of a buffer.
struct ByteRange {
  int buffer;
  size_t offset, bytes;
};
/// What the kernel in front of an early start may still be writing: q, and the K and V of each
/// request's newest q_len tokens, unless they are older tokens of another request.
std::vector<ByteRange> late_bytes(const Tensors &t);

/// Copies the logical values of q (row for row, head for head) or of one request's keys.
void copy_query(Tensors &to, int to_row, int to_head, const Tensors &from, int row, int head);
void copy_keys(Tensors &to, int to_cache, int to_row, int to_token, int to_head,
               const Tensors &from, int cache, int row, int token, int head);

/// Copies scales, slopes and sinks, each to the kv head (with its query heads) so many further.
void copy_features(Tensors &to, const Tensors &from, int kv_heads_apart);

} // namespace assay
