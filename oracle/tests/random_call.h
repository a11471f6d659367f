// SPDX-License-Identifier: Apache-2.0
// Paged calls with random contents, whose outputs are the exact ones, rounded.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "oracle/exact/dtype.h"
#include "oracle/judge/judge.h"
#include "oracle/rows/build.h"

namespace assay::oracle::test {

/// Where the arrays of a call lie.
class CallMemory {
public:
  virtual ~CallMemory() = default;
  virtual void *allocate(size_t bytes) = 0;
  template <class T>
  T *make(size_t count) {
    return static_cast<T *>(allocate(std::max<size_t>(count * sizeof(T), 16)));
  }
};

class HostMemory final : public CallMemory {
public:
  void *allocate(size_t bytes) override {
    blocks_.emplace_back(new std::max_align_t[bytes / sizeof(std::max_align_t) + 1]());
    return blocks_.back().get();
  }

private:
  std::vector<std::unique_ptr<std::max_align_t[]>> blocks_;
};

struct Options {
  assay_dtype dtype = ASSAY_BF16, kv_dtype = ASSAY_BF16;
  int head_dim = 128, group = 4, kv_heads = 2, q_len = 1, page = 16;
  std::vector<int> lengths = {300, 0, 1, 64, 129};
  int window = 0;
  float softcap = 0.0f, size = 1.0f, v_size = 1.0f;
  float q_error = 0x1p-39f; ///< error of Q, relative to its largest element
  bool alibi = false, sinks = false, scales = false, specials = false, base2 = false;
  int tile = 0;               ///< tile of a declared order; 0: none
  int splits = 1, states = 1; ///< splits and states of that order
  bool two_parts = false, replay_scores = false;
  assay_format score_format = ASSAY_FORMAT_FP32;
  assay_format q_format = ASSAY_FORMAT_FP32, product_format = ASSAY_FORMAT_FP32,
               qk_sum_format = ASSAY_FORMAT_FP32, output_format = ASSAY_FORMAT_FP32;
};

inline assay_arithmetic arithmetic_of(const Options &o) {
  assay_arithmetic a{};
  a.mma_block = 8;
  a.mma_fraction_bits = 24;
  a.p_format = ASSAY_FORMAT_CALL;
  a.exp2_rel_error = 0x1p-22f;
  a.log2_abs_error = 0x1p-22f;
  a.q_abs_error = o.q_error;
  a.rcp_rel_error = 0x1p-23f;
  a.tanh_abs_error = 0x1p-20f;
  a.sum_depth = 32;
  a.tile_tokens = 64;
  a.max_parallel_states = 4;
  a.max_splits = 8;
  a.merge_stages = 1;
  a.score_format = o.score_format;
  a.q_format = o.q_format;
  a.product_format = o.product_format;
  a.qk_sum_format = o.qk_sum_format;
  a.output_format = o.output_format;
  a.exponential = o.base2 ? ASSAY_EXP_NATURAL : ASSAY_EXP_BASE2;
  return a;
}

/// Tiles dealt to the states of a split one after another, splits of whole tiles.
inline std::shared_ptr<const KeyOrder> order_of(const Options &o) {
  auto order = std::make_shared<KeyOrder>();
  order->first.push_back(0);
  for (const int keys : o.lengths) {
    const int tiles = (keys + o.tile - 1) / o.tile;
    for (int i = 0; i < tiles; ++i)
      order->tiles.push_back({.level = 0,
                              .split = i * o.splits / tiles,
                              .state = i % o.states,
                              .begin = i * o.tile,
                              .end = std::min((i + 1) * o.tile, keys),
                              .p_parts = o.two_parts && i % 2 ? 2 : 1});
    order->first.push_back(static_cast<int64_t>(order->tiles.size()));
  }
  return order;
}

/// A call with random contents. Outputs are the exact ones, rounded.
class RandomCall {
public:
  RandomCall(const Options &o, unsigned seed, CallMemory &memory)
      : options(o), random_(seed), memory_(memory) {
    const int batch = static_cast<int>(o.lengths.size()), heads = o.group * o.kv_heads;
    const int longest = *std::max_element(o.lengths.begin(), o.lengths.end());
    const int columns = (longest + o.page - 1) / o.page + 1, pages = batch * columns;
    assay_paged_params &p = params;
    p.struct_size = sizeof p;
    p.dtype = o.dtype;
    p.kv_dtype = o.kv_dtype;
    p.lse_base = o.base2 ? ASSAY_LSE_BASE_2 : ASSAY_LSE_BASE_E;
    p.batch = p.kv.rows = batch;
    p.q_len = o.q_len;
    p.num_qo_heads = heads;
    p.num_kv_heads = o.kv_heads;
    p.head_dim = o.head_dim;
    p.sm_scale = 1.0f / std::sqrt(static_cast<float>(o.head_dim));
    p.logits_soft_cap = o.softcap;
    p.window_left = o.window - 1;
    const int64_t d = o.head_dim, row = heads * d;
    p.q_stride_head = p.out_stride_head = d;
    p.q_stride_token = p.out_stride_token = row;
    p.q_stride_batch = p.out_stride_batch = row * o.q_len;
    p.lse_stride_head = 1;
    p.lse_stride_token = heads;
    p.lse_stride_batch = heads * o.q_len;
    const size_t outputs = static_cast<size_t>(batch * o.q_len * row);
    p.q = elements(o.dtype, outputs, o.size);
    p.out = memory_.make<unsigned char>(outputs * 4); // room for every type
    p.lse = memory_.make<float>(outputs / static_cast<size_t>(d));
    assay_paged_kv &kv = p.kv;
    kv.page_size = o.page;
    kv.max_pages = columns;
    kv.page_table_stride = columns;
    kv.k_stride_head = kv.v_stride_head = d;
    kv.k_stride_token = kv.v_stride_token = d * o.kv_heads;
    kv.k_stride_page = kv.v_stride_page = d * o.kv_heads * o.page;
    const auto cache = static_cast<size_t>(pages * kv.k_stride_page);
    kv.k = elements(o.kv_dtype, cache, o.size);
    kv.v = elements(o.kv_dtype, cache, o.v_size);
    auto *table = memory_.make<int32_t>(static_cast<size_t>(pages));
    for (int i = 0; i < pages; ++i)
      table[i] = i;
    std::shuffle(table, table + pages, random_);
    kv.page_table = table;
    auto *lengths = memory_.make<int32_t>(o.lengths.size());
    std::copy(o.lengths.begin(), o.lengths.end(), lengths);
    kv.seq_lens = lengths;
    if (o.alibi) p.alibi_slopes = floats(heads, 0.01f, 0.3f);
    if (o.sinks) {
      float *sinks = floats(heads, -2.0f, 4.0f);
      sinks[0] = -INFINITY;
      p.sinks = sinks;
    }
    if (o.scales) {
      p.k_scale = floats(o.kv_heads, 0.3f, 2.0f);
      p.v_scale = floats(o.kv_heads, 0.3f, 2.0f);
      p.k_scale_stride = p.v_scale_stride = 1;
    }
    rows = std::get<AttentionRows>(rows_of(params));
    model.arithmetic = arithmetic_of(o);
    model.replay_scores = o.replay_scores;
    if (o.tile > 0) model.order = order_of(o);
    fill();
  }

  CallOutputs outputs() const { return {params.out, params.lse}; }
  void *o_of(int row, int head, int dim) {
    return static_cast<unsigned char *>(params.out) +
           element_size(rows.out.dtype) *
               (rows.out.o_at[static_cast<size_t>(row)] + head * rows.out.out_stride_head + dim);
  }
  float *lse_of(int row, int head) {
    return params.lse + rows.out.lse_at[static_cast<size_t>(row)] + head;
  }

  /// Outputs become the exact ones of the rows and the model as they are, rounded.
  void fill();

  Options options;
  assay_paged_params params{};
  AttentionRows rows;
  KernelModel model;

private:
  void *elements(assay_dtype dtype, size_t count, float size) {
    auto *to = memory_.make<unsigned char>(count * static_cast<size_t>(element_size(dtype)));
    std::normal_distribution<float> normal(0.0f, size);
    for (size_t i = 0; i < count; ++i) {
      float x = normal(random_);
      if (options.specials && random_() % 50 == 0)
        x = random_() % 2 ? 0x1p-15f * static_cast<float>(random_() % 2) : x * 40.0f;
      if (options.specials && random_() % 4000 == 0) x = random_() % 2 ? INFINITY : NAN;
      const double rounded = round_to(format_of(dtype), x);
      store_element(dtype, to, static_cast<int64_t>(i),
                    static_cast<float>(is_fp8(dtype) && std::isinf(rounded) ? 0.0 : rounded));
    }
    return to;
  }
  float *floats(int count, float low, float high) {
    auto *to = memory_.make<float>(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i)
      to[i] = std::uniform_real_distribution<float>(low, high)(random_);
    return to;
  }
  std::mt19937 random_;
  CallMemory &memory_;
};

inline void RandomCall::fill() {
  AttentionReader reader(rows, model);
  for (int row = 0; row < rows.out.rows(); ++row)
    for (int head = 0; head < rows.out.heads; ++head) {
      const RowReference exact = attention_row(reader.problem(row, head));
      // The tightest tier gives the centre, because a right kernel's weights are rounded.
      const auto &o = exact.t2.applies() ? exact.t2.o : exact.t1.applies() ? exact.t1.o : exact.o;
      for (int dim = 0; dim < rows.out.dims; ++dim)
        store_element(rows.out.dtype, o_of(row, head, dim), 0,
                      static_cast<float>(
                          round_to(format_of(rows.out.dtype), o[static_cast<size_t>(dim)].mid)));
      const Enclosure &lse = exact.t2.applies() ? exact.t2.lse : exact.lse;
      *lse_of(row, head) = exact.empty && !exact.sunken ? -INFINITY : static_cast<float>(lse.mid);
    }
}

inline Options random_options(std::mt19937 &random) {
  const auto among = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  Options o;
  o.dtype = among({ASSAY_BF16, ASSAY_FP16});
  o.kv_dtype = random() % 3 ? o.dtype : among({ASSAY_E4M3, ASSAY_E5M2});
  o.head_dim = among({64, 128, 256, 96, 40});
  o.group = among({1, 2, 4, 5, 8});
  o.kv_heads = among({1, 2, 3});
  o.q_len = among({1, 1, 2, 4});
  o.page = among({1, 7, 16, 128});
  o.lengths.clear();
  for (int i = 0; i < 4; ++i)
    o.lengths.push_back(among({0, 1, 3, 63, 64, 65, 200, 513, 700, 1100}));
  o.lengths.push_back(10);
  o.window = among({0, 0, 1, 50, 128});
  o.softcap = among({0, 0, 0, 30});
  o.size = static_cast<float>(among({1, 1, 3, 12}));
  o.alibi = random() % 4 == 0;
  o.sinks = random() % 4 == 0;
  o.scales = is_fp8(o.kv_dtype) && random() % 2;
  o.specials = random() % 3 == 0;
  o.base2 = random() % 2;
  return o;
}

/// And with an order of keys, most of them.
inline Options random_tier_options(std::mt19937 &random) {
  const auto among = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  Options o = random_options(random);
  o.head_dim = among({64, 128, 96, 40});
  o.group = among({1, 2, 4});
  for (int &keys : o.lengths)
    keys = std::min(keys, 513);
  o.tile = among({0, 16, 64, 64, 128, 2000});
  o.splits = among({1, 1, 2, 7});
  o.states = among({1, 1, 2, 4});
  o.two_parts = random() % 4 == 0;
  o.replay_scores = random() % 2 == 0;
  // Queries whose bits a kernel may or may not have scaled.
  if (is_fp8(o.kv_dtype) && random() % 2 == 0) {
    o.dtype = ASSAY_FP16;
    o.specials = o.replay_scores = true;
    o.tile = 64;
  }
  // Scores of these may leave the range of fp16.
  if (random() % 6 == 0) {
    o.score_format = ASSAY_FORMAT_FP16;
    o.size = 40.0f;
  }
  // Sums of these may leave the range of fp32.
  if (o.kv_dtype == ASSAY_BF16 && random() % 6 == 0) o.v_size = 0x1p124f;
  if (random() % 6 == 0) o.q_format = among({ASSAY_FORMAT_CALL, ASSAY_FORMAT_BF16});
  if (random() % 8 == 0) o.product_format = among({ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16});
  if (random() % 8 == 0) o.qk_sum_format = among({ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16});
  if (random() % 6 == 0) o.output_format = among({ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16});
  return o;
}

/// Rows that share keys, with an order of them.
inline Options random_group_options(std::mt19937 &random) {
  const auto among = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  Options o = random_tier_options(random);
  o.group = among({1, 2, 3, 4, 5, 8, 16});
  o.kv_heads = o.group > 4 ? 1 : among({1, 2});
  o.tile = among({16, 32, 64, 64, 128});
  o.splits = among({1, 1, 2, 3, 8});
  o.states = among({1, 1, 2, 3, 4});
  o.replay_scores = false;
  o.lengths = {among({1, 2, 17, 63, 65}), among({0, 128, 200, 333})};
  o.lengths.push_back(among({64, 129, 700, 1100, 3000}));
  if (o.lengths.back() > 1000) o.kv_heads = 1, o.group = std::min(o.group, 4);
  return o;
}

} // namespace assay::oracle::test
