// SPDX-License-Identifier: Apache-2.0
// A paged call on the executor, and a plain double-precision softmax to hold it against.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/simt/stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace assay {
inline float from_bf16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float f;
  std::memcpy(&f, &wide, 4);
  return f;
}
inline uint16_t to_bf16(float f) { // truncation: test data only
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>(bits >> 16);
}

struct Decode {
  int batch, kv_heads, group, d, page_size, max_pages, splits;
  std::vector<int> lens;
};

/// One NHD paged call in memory the executor guards.
struct Call {
  simt::Stream stream;
  assay_paged_params p = assay_paged_params_init();
  Decode c;
  uint16_t *q, *k, *v, *o;
  float *lse;
  int32_t *table, *seq_lens;

  template <class T>
  T *allocate(size_t n, simt::Access access, const char *tag) {
    return static_cast<T *>(stream.memory.allocate(
        n * sizeof(T), access,
        access == simt::Access::kReadOnly ? simt::InitState::kDefined : simt::InitState::kUndefined,
        tag));
  }

  explicit Call(const Decode &decode, uint64_t seed) : c(decode) {
    std::mt19937_64 rng(seed);
    std::normal_distribution<float> normal;
    const int heads = c.kv_heads * c.group, pages = c.batch * c.max_pages;
    const size_t pool = size_t(pages) * c.page_size * c.kv_heads * c.d;
    using simt::Access;
    q = allocate<uint16_t>(size_t(c.batch) * heads * c.d, Access::kReadOnly, "q");
    k = allocate<uint16_t>(pool, Access::kReadOnly, "k");
    v = allocate<uint16_t>(pool, Access::kReadOnly, "v");
    o = allocate<uint16_t>(size_t(c.batch) * heads * c.d, Access::kReadWrite, "o");
    lse = allocate<float>(size_t(c.batch) * heads, Access::kReadWrite, "lse");
    table = allocate<int32_t>(pages, Access::kReadOnly, "page_table");
    seq_lens = allocate<int32_t>(c.batch, Access::kReadOnly, "seq_lens");
    for (size_t i = 0; i < size_t(c.batch) * heads * c.d; ++i)
      q[i] = to_bf16(normal(rng));
    for (size_t i = 0; i < pool; ++i)
      k[i] = to_bf16(normal(rng)), v[i] = to_bf16(normal(rng));
    for (int i = 0; i < pages; ++i)
      table[i] = pages - 1 - i;
    for (int i = 0; i < c.batch; ++i)
      seq_lens[i] = c.lens[i];
    p.struct_size = sizeof p;
    p.dtype = p.kv_dtype = ASSAY_BF16;
    p.batch = c.batch;
    p.q_len = 1;
    p.num_qo_heads = heads;
    p.num_kv_heads = c.kv_heads;
    p.head_dim = c.d;
    p.sm_scale = 1.0f / std::sqrt(float(c.d));
    p.num_splits = c.splits;
    p.q = q;
    p.out = o;
    p.lse = lse;
    p.q_stride_batch = p.out_stride_batch = heads * c.d;
    p.q_stride_head = p.out_stride_head = c.d;
    p.lse_stride_batch = heads;
    p.lse_stride_head = 1;
    p.kv.k = k;
    p.kv.v = v;
    p.kv.k_stride_token = p.kv.v_stride_token = c.kv_heads * c.d;
    p.kv.k_stride_page = p.kv.v_stride_page = c.page_size * c.kv_heads * c.d;
    p.kv.k_stride_head = p.kv.v_stride_head = c.d;
    p.kv.page_table = table;
    p.kv.seq_lens = seq_lens;
    p.kv.page_table_stride = p.kv.max_pages = c.max_pages;
    p.kv.rows = c.batch;
    p.kv.page_size = c.page_size;
    p.stream = &stream;
    uint64_t bytes = 0;
    EXPECT_EQ(assay_paged_attention_v2_workspace_size(&p, &bytes), ASSAY_OK) << assay_last_error();
    p.workspace = allocate<char>(bytes, Access::kReadWrite, "workspace");
    p.workspace_bytes = bytes;
  }

  size_t kv_index(int request, int token, int head) const {
    const int page = table[request * c.max_pages + token / c.page_size];
    return ((size_t(page) * c.page_size + token % c.page_size) * c.kv_heads + head) * c.d;
  }

  void expect_dense(const char *name) const {
    const int heads = c.kv_heads * c.group;
    for (int b = 0; b < c.batch; ++b)
      for (int h = 0; h < heads; ++h) {
        std::vector<double> w(c.lens[b]), out(c.d, 0.0);
        double sum = 0, scale = 0;
        for (int t = 0; t < c.lens[b]; ++t) {
          double s = 0;
          for (int i = 0; i < c.d; ++i)
            s += double(from_bf16(q[(b * heads + h) * c.d + i])) *
                 from_bf16(k[kv_index(b, t, h / c.group) + i]);
          sum += w[t] = std::exp(s * p.sm_scale);
        }
        for (int t = 0; t < c.lens[b]; ++t)
          for (int i = 0; i < c.d; ++i)
            out[i] += w[t] / sum * from_bf16(v[kv_index(b, t, h / c.group) + i]);
        for (double x : out)
          scale = std::max(scale, std::abs(x));
        for (int i = 0; i < c.d; ++i)
          ASSERT_NEAR(from_bf16(o[(b * heads + h) * c.d + i]), out[i], 0.02 * scale)
              << name << " request " << b << " head " << h << " dim " << i;
        const double expected = c.lens[b] == 0 ? -INFINITY : std::log(sum);
        if (c.lens[b] == 0)
          ASSERT_EQ(lse[b * heads + h], expected) << name;
        else
          ASSERT_NEAR(lse[b * heads + h], expected, 1e-3) << name;
      }
  }
};

} // namespace assay
