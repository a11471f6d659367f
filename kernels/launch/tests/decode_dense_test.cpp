// SPDX-License-Identifier: Apache-2.0
// First light of every decode kernel on the executor: against a plain double-precision softmax at a
// loose 2 %, enough to see a wiring mistake next to the code that made it. The verdicts that count
// are the oracle's (properties/).
#include "kernels/abi/plugin.h"
#include "kernels/simt/stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace assay {
namespace {

float from_bf16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float f;
  std::memcpy(&f, &wide, 4);
  return f;
}
uint16_t to_bf16(float f) { // truncation: test data only
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
  assay_paged_params p = {};
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
    p.o = o;
    p.lse = lse;
    p.q_stride_batch = p.o_stride_batch = heads * c.d;
    p.q_stride_head = p.o_stride_head = c.d;
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

const Decode kCases[] = {
    {1, 1, 1, 64, 16, 1, 0, {16}},
    {1, 1, 1, 128, 16, 8, 0, {100}},
    {2, 2, 4, 64, 16, 10, 0, {130, 0}},
    {3, 1, 8, 128, 1, 70, 3, {70, 1, 33}},
    {1, 2, 7, 64, 64, 4, 7, {255}},
    {2, 1, 16, 64, 16, 6, 0, {80, 17}},
    {1, 1, 24, 64, 5, 20, 2, {97}},
    {3, 2, 2, 64, 16, 20, 100, {5, 0, 320}},
    // Many splits of every slot size: a lane of the merge has 4, 8 or 16 of its vectors.
    {1, 1, 7, 128, 16, 12, 40, {190}},
    {1, 1, 13, 128, 16, 9, 21, {140}},
    {1, 2, 5, 256, 16, 5, 18, {77}},
    // Half of the rows at most: two splits are merged at a time (not with head_dim 256), the last
    // one may have no pair.
    {1, 1, 4, 128, 16, 12, 40, {190}},
    {1, 2, 3, 64, 16, 9, 21, {140}},
    {1, 1, 21, 64, 5, 20, 11, {97}},
    {1, 1, 4, 256, 16, 5, 18, {77}},
};

TEST(DecodeDense, v1_and_v2_on_the_executor) {
  for (const Decode &c : kCases) {
    for (int version : {1, 2}) {
      Call call(c, 7);
      const assay_status status =
          version == 1 ? assay_paged_attention_v1(&call.p) : assay_paged_attention_v2(&call.p);
      ASSERT_EQ(status, ASSAY_OK) << assay_last_error();
      call.expect_dense(version == 1 ? "v1" : "v2");
    }
  }
}

// Weights of 1 leave nothing to a second part, and zero times infinity is no number. The oracle
// makes no claim about infinite values.
TEST(DecodeDense, an_infinite_value_makes_its_component_infinite_and_no_other) {
  for (int group : {1, 4, 7})
    for (int splits : {0, 3})
      for (int version : {1, 2}) {
        Call call({1, 1, group, 64, 16, 12, splits, {190}}, 5);
        for (int i = 0; i < group * 64; ++i)
          call.q[i] = 0;
        call.v[call.kv_index(0, 77, 0) + 3] = to_bf16(INFINITY);
        const assay_status status =
            version == 1 ? assay_paged_attention_v1(&call.p) : assay_paged_attention_v2(&call.p);
        ASSERT_EQ(status, ASSAY_OK) << assay_last_error();
        for (int i = 0; i < group * 64; ++i) {
          const float o = from_bf16(call.o[i]);
          EXPECT_TRUE(i % 64 == 3 ? o == INFINITY : std::isfinite(o))
              << "v" << version << " group " << group << " splits " << splits << " element " << i
              << ": " << o;
        }
      }
}

// Weights are relative to the largest LSE of all splits, wherever it is: relative to a smaller one,
// 2^200 overflows.
TEST(DecodeDense, the_last_of_many_splits_outweighs_the_rest) {
  Call call({1, 1, 1, 64, 16, 12, 40, {190}}, 13);
  for (int i = 0; i < call.c.d; ++i)
    call.k[call.kv_index(0, 189, 0) + i] = to_bf16(18.0f * from_bf16(call.q[i]));
  ASSERT_EQ(assay_paged_attention_v2(&call.p), ASSAY_OK) << assay_last_error();
  call.expect_dense("v2");
  EXPECT_GT(call.lse[0], 100.0f);
}

// One plan serves every layer of a decode step: the same buffer twice, then with other lengths (a
// graph replay re-plans, nothing else changes). The split counters are back at 0 after every call.
TEST(DecodeDense, a_plan_is_reused_and_replanned) {
  Call call({3, 2, 4, 64, 16, 30, 0, {470, 0, 33}}, 11);
  assay_plan_params plan = {};
  plan.struct_size = sizeof plan;
  plan.dtype = plan.kv_dtype = ASSAY_BF16;
  plan.batch = 3;
  plan.q_len = 1;
  plan.num_qo_heads = call.p.num_qo_heads;
  plan.num_kv_heads = 2;
  plan.head_dim = 64;
  plan.max_seq_len = 480;
  plan.seq_lens = call.seq_lens;
  plan.stream = &call.stream;
  ASSERT_EQ(assay_plan_size(&plan, &plan.plan_bytes), ASSAY_OK) << assay_last_error();
  plan.plan = call.allocate<char>(plan.plan_bytes, simt::Access::kReadWrite, "plan");
  call.p.plan = plan.plan;
  call.p.plan_bytes = plan.plan_bytes;
  for (const std::vector<int> &lens : {std::vector<int>{470, 0, 33}, {1, 480, 300}}) {
    call.c.lens = lens;
    for (int b = 0; b < 3; ++b)
      call.seq_lens[b] = lens[b];
    ASSERT_EQ(assay_plan(&plan), ASSAY_OK) << assay_last_error();
    const std::vector<char> planned(static_cast<char *>(plan.plan),
                                    static_cast<char *>(plan.plan) + plan.plan_bytes);
    for (int layer = 0; layer < 2; ++layer) {
      call.stream.memory.mark_undefined(call.o, size_t{3} * call.p.num_qo_heads * 64 * 2);
      ASSERT_EQ(assay_paged_attention_v2(&call.p), ASSAY_OK) << assay_last_error();
      call.expect_dense("v2 with a plan");
      EXPECT_EQ(std::memcmp(plan.plan, planned.data(), planned.size()), 0) << "layer " << layer;
    }
  }
}

// 8 requests share a prefix of 512 keys and own suffixes of 64 (the flash-decoding lab's example):
// every prefix row of K is read once, not once per request. Saved: exactly 7 x 512 rows per head.
TEST(DecodeDense, cascade_reads_a_shared_prefix_once) {
  constexpr int kBatch = 8, kPrefix = 512, kSuffix = 64, kPage = 16, kD = 64, kKvHeads = 2;
  constexpr int kPages = (kPrefix + kSuffix) / kPage;
  Call call(
      {kBatch, kKvHeads, 2, kD, kPage, kPages, 0, std::vector<int>(kBatch, kPrefix + kSuffix)}, 3);
  // Every request's first pages are request 0's.
  for (int b = 1; b < kBatch; ++b)
    for (int page = 0; page < kPrefix / kPage; ++page)
      call.table[b * kPages + page] = call.table[page];
  auto *prefix_len = call.allocate<int32_t>(1, simt::Access::kReadOnly, "prefix_len");
  auto *suffix_lens = call.allocate<int32_t>(kBatch, simt::Access::kReadOnly, "suffix_lens");
  auto *prefix_indptr = call.allocate<int32_t>(2, simt::Access::kReadOnly, "prefix_indptr");
  auto *suffix_indptr =
      call.allocate<int32_t>(kBatch + 1, simt::Access::kReadOnly, "suffix_indptr");
  prefix_len[0] = kPrefix;
  prefix_indptr[0] = 0;
  prefix_indptr[1] = kBatch;
  for (int b = 0; b <= kBatch; ++b)
    suffix_indptr[b] = b;
  for (int b = 0; b < kBatch; ++b)
    suffix_lens[b] = kSuffix;
  assay_cascade_level levels[2] = {{call.p.kv, prefix_indptr}, {call.p.kv, suffix_indptr}};
  levels[0].kv.rows = 1;
  levels[0].kv.max_pages = kPrefix / kPage;
  levels[0].kv.seq_lens = prefix_len;
  levels[1].kv.max_pages = kSuffix / kPage;
  levels[1].kv.page_table += kPrefix / kPage;
  levels[1].kv.seq_lens = suffix_lens;
  assay_cascade_params p = {};
  p.struct_size = sizeof p;
  p.dtype = ASSAY_BF16;
  p.batch = kBatch;
  p.num_qo_heads = call.p.num_qo_heads;
  p.num_kv_heads = kKvHeads;
  p.head_dim = kD;
  p.sm_scale = call.p.sm_scale;
  p.num_levels = 2;
  p.q = call.q;
  p.q_stride_batch = call.p.q_stride_batch;
  p.q_stride_head = kD;
  p.o = call.o;
  p.o_stride_batch = call.p.o_stride_batch;
  p.o_stride_head = kD;
  p.lse = call.lse;
  p.lse_stride_batch = call.p.lse_stride_batch;
  p.lse_stride_head = 1;
  p.levels = levels;
  p.stream = &call.stream;
  uint64_t bytes = 0;
  ASSERT_EQ(assay_cascade_attention_workspace_size(&p, &bytes), ASSAY_OK) << assay_last_error();
  p.workspace = call.allocate<char>(bytes, simt::Access::kReadWrite, "workspace");
  p.workspace_bytes = bytes;

  const auto key_rows_per_head = [&] {
    const uint64_t read = call.stream.memory.info(call.stream.memory.id_of(call.k)).bytes_read;
    return read / (kD * sizeof(uint16_t)) / kKvHeads;
  };
  ASSERT_EQ(assay_paged_attention_v1(&call.p), ASSAY_OK) << assay_last_error();
  const uint64_t flat = key_rows_per_head();
  EXPECT_EQ(flat, uint64_t{kBatch} * (kPrefix + kSuffix)) << "v1 reads each key row once";
  call.stream.memory.reset_counters();
  call.stream.memory.mark_undefined(call.o, kBatch * call.p.num_qo_heads * kD * 2);
  ASSERT_EQ(assay_cascade_attention(&p), ASSAY_OK) << assay_last_error();
  call.expect_dense("cascade");
  EXPECT_EQ(flat - key_rows_per_head(), 7u * kPrefix);
}

} // namespace
} // namespace assay
