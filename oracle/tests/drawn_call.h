// SPDX-License-Identifier: Apache-2.0
// A random call of assay_judge.h with masks, scales of tokens and blocks, or fp8 outputs, and what
// an emulated kernel writes for it, right or with a mistake.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/abi/assay_judge.h"
#include "oracle/exact/dtype.h"
#include "oracle/tests/array_of.h"
#include "oracle/tests/emulation.h"

namespace assay::oracle::test::drawn {

constexpr int kDim = 16, kKvHeads = 2, kHeads = 4, kPage = 4, kRequests = 3, kPages = 40;

/// What a kernel does that it should not.
enum class Wrong {
  kNothing,
  kMaskIgnored,
  kMaskOfTheNextKey,
  kMaskOfTheNextQuery,
  kScaleLeftOut,
  kScaleOfTheNextToken,
  kScaleOfTheNextHead,
  kScaleOfTheNextBlock,
  kScaleOfVFromK,
  kOutputScaleLeftOut,
  kOutputScaleInverted,
  kOutputTruncated,
};

/// One call: paged keys, ragged queries, and any of the three features.
class Call {
public:
  bool masked, scaled, fp8_out;
  int blocks = 1;

  Call(uint64_t seed, bool mask, bool scales, bool out)
      : masked(mask), scaled(scales), fp8_out(out), random_(seed) {
    for (int r = 0; r < kRequests; ++r) {
      lengths_.push_back(1 + pick(48));
      indptr_.push_back(indptr_.back() + 1 + pick(3));
    }
    for (int r = 0; r < kRequests; ++r)
      lengths_[r] = std::max(lengths_[r], indptr_[r + 1] - indptr_[r]);
    draw_arithmetic();
    draw_caches();
    for (int i = 0, n = rows() * kHeads * kDim; i < n; ++i)
      q_.push_back(rounded(dtype_, normal_(random_)));
    if (masked) draw_mask();
    o_scale_ =
        fp8_out ? std::ldexp(1.0f + 0.01f * static_cast<float>(pick(100)), pick(6) - 6) : 1.0f;
  }

  /// Runs a kernel and judges what it wrote.
  assay_judge_report judge(Wrong wrong) {
    std::vector<uint16_t> q(q_.size());
    for (size_t i = 0; i < q_.size(); ++i)
      store_element(dtype_, q.data(), static_cast<int64_t>(i), q_[i]);
    run(wrong);
    assay_judge_attention_params p{};
    p.struct_size = sizeof p;
    p.causal = causal_;
    p.out = array(o_.data(), out_type_, {rows(), kHeads, kDim});
    p.q = array(q.data(), dtype_, {rows(), kHeads, kDim});
    p.k = array(k_.data(), kv_type_, {kPages, kPage, kKvHeads, kDim});
    p.v = array(v_.data(), kv_type_, {kPages, kPage, kKvHeads, kDim});
    p.lse = array(lse_.data(), ASSAY_FP32, {rows(), kHeads});
    p.page_table = array(table_.data(), ASSAY_INT32, {kRequests, kColumns});
    p.seq_lens = array(lengths_.data(), ASSAY_INT32, {kRequests});
    p.qo_indptr = array(indptr_.data(), ASSAY_INT32, {kRequests + 1});
    if (scaled) {
      p.k_scale = array(k_scale_.data(), ASSAY_FP32, {kPages, kPage, kKvHeads, blocks});
      p.v_scale = array(v_scale_.data(), ASSAY_FP32, {kPages, kPage, kKvHeads, blocks});
    }
    if (fp8_out) p.o_scale = array(&o_scale_, ASSAY_FP32, {1});
    if (masked) p.mask = array(mask_.data(), ASSAY_UINT8, {static_cast<int64_t>(mask_.size())});
    p.sm_scale = kScale;
    p.window_left = p.window_right = -1;
    p.arithmetic = declared(emulation_);
    assay_judge_report report{};
    report.struct_size = sizeof report;
    EXPECT_EQ(assay_judge_attention(&p, &report), ASSAY_OK) << assay_judge_last_error();
    return report;
  }

private:
  static constexpr int kColumns = 16;
  static constexpr float kScale = 0.25f;
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  Emulation emulation_;
  assay_dtype dtype_ = ASSAY_BF16;
  int32_t kv_type_ = ASSAY_BF16, out_type_ = ASSAY_BF16, causal_ = 1;
  int splits_ = 1;
  float o_scale_ = 1.0f;
  std::vector<int32_t> lengths_, indptr_{0}, table_;
  std::vector<uint16_t> k_, v_, o_; // bytes of narrower types lie in front
  std::vector<float> q_, k_scale_, v_scale_, lse_;
  std::vector<uint8_t> mask_;

  int pick(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }
  int rows() const { return indptr_.back(); }
  static float rounded(assay_dtype dtype, float value) {
    uint16_t bits = 0;
    store_element(dtype, &bits, 0, value);
    return load_element(dtype, &bits, 0);
  }

  void draw_arithmetic() {
    Emulation &e = emulation_;
    // Scales that are no powers of two are multiplied in fp32, which chains of fp32 take.
    e.block = scaled || pick(3) == 0 ? 0 : 16;
    if (!scaled && pick(2)) dtype_ = ASSAY_FP16;
    if (scaled && pick(2)) e.p_format = ASSAY_FORMAT_BF16;
    e.tile = 1 << pick(6);
    e.states = 1 + pick(3);
    e.combine = pick(2) != 0;
    splits_ = e.combine ? 1 + pick(4) : 1;
    e.maxima = static_cast<Maxima>(pick(4));
    e.noise = static_cast<Noise>(pick(5));
    e.natural = pick(2) != 0;
    if (pick(2)) e.exp2_error = std::ldexp(1.0, -6 - pick(17));
    if (pick(2)) e.log2_error = std::ldexp(1.0, -6 - pick(17));
    if (pick(2)) e.rcp_error = std::ldexp(1.0, -6 - pick(17));
    e.seed = random_();
    out_type_ = dtype_;
    if (fp8_out)
      out_type_ = pick(2) ? ASSAY_E4M3 : ASSAY_E5M2;
    else if (pick(2))
      out_type_ = ASSAY_FP32; // its rounding is the smallest part of a bound
    e.round_output = out_type_ == dtype_;
    causal_ = masked ? pick(2) : 1;
  }

  void draw_caches() {
    std::vector<int32_t> ids(kPages);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random_);
    table_.assign(kRequests * kColumns, -1);
    for (int r = 0, next = 0; r < kRequests; ++r)
      for (int page = 0; page * kPage < lengths_[r]; ++page)
        table_[r * kColumns + page] = ids[next++];
    if (scaled)
      kv_type_ = pick(2) ? int32_t{ASSAY_E4M3} : int32_t{ASSAY_INT8};
    else
      kv_type_ = dtype_;
    const int tokens = kPages * kPage * kKvHeads;
    for (auto *cache : {&k_, &v_}) {
      cache->assign(static_cast<size_t>(tokens) * kDim, 0);
      for (int i = 0; i < tokens * kDim; ++i) {
        const float x = normal_(random_);
        if (kv_type_ == ASSAY_INT8)
          reinterpret_cast<int8_t *>(cache->data())[i] =
              static_cast<int8_t>(std::lround(std::clamp(x * 40.0f, -127.0f, 127.0f)));
        else
          store_element(static_cast<assay_dtype>(kv_type_), cache->data(), i, x);
      }
    }
    if (!scaled) return;
    blocks = 1 << pick(4);
    const float unit = kv_type_ == ASSAY_INT8 ? 0x1p-5f : 1.0f;
    for (auto *scales : {&k_scale_, &v_scale_})
      for (int i = 0; i < tokens * blocks; ++i)
        scales->push_back(draw_scale() * unit);
  }

  // In two statements: the order in which a call's arguments are evaluated is the compiler's.
  float draw_scale() {
    if (pick(40) == 0) return 0.0f;
    const float mantissa = 1.0f + 0.01f * static_cast<float>(pick(100));
    return std::ldexp(mantissa, pick(5) - 3);
  }

  void draw_mask() {
    const int shown[] = {5, 50, 95};
    const int percent = shown[pick(3)];
    for (int r = 0; r < kRequests; ++r)
      for (int i = (indptr_[r + 1] - indptr_[r]) * lengths_[r]; i > 0; --i)
        mask_.push_back(pick(100) < percent);
  }

  /// Element i of a token of a cache, times its scale in fp32.
  float element(bool of_k, int token, int head, int i, Wrong wrong) const {
    const std::vector<uint16_t> &cache = of_k ? k_ : v_;
    const int at = (token * kKvHeads + head) * kDim + i;
    const float x = kv_type_ == ASSAY_INT8
                        ? reinterpret_cast<const int8_t *>(cache.data())[at]
                        : load_element(static_cast<assay_dtype>(kv_type_), cache.data(), at);
    if (!scaled || wrong == Wrong::kScaleLeftOut) return x;
    int block = i / (kDim / blocks);
    if (wrong == Wrong::kScaleOfTheNextToken) token = (token + 1) % (kPages * kPage);
    if (wrong == Wrong::kScaleOfTheNextHead) head = (head + 1) % kKvHeads;
    if (wrong == Wrong::kScaleOfTheNextBlock) block = (block + 1) % blocks;
    const bool k_scale = of_k || wrong == Wrong::kScaleOfVFromK;
    return x * (k_scale ? k_scale_ : v_scale_)[(token * kKvHeads + head) * blocks + block];
  }

  bool shows(int request, int query, int key, Wrong wrong) const {
    const int queries = indptr_[request + 1] - indptr_[request], keys = lengths_[request];
    if (causal_ && key > keys - queries + query) return false;
    if (!masked || wrong == Wrong::kMaskIgnored) return true;
    if (wrong == Wrong::kMaskOfTheNextKey) key = (key + 1) % keys;
    if (wrong == Wrong::kMaskOfTheNextQuery) query = (query + 1) % queries;
    int64_t at = static_cast<int64_t>(query) * keys + key;
    for (int r = 0; r < request; ++r)
      at += static_cast<int64_t>(indptr_[r + 1] - indptr_[r]) * lengths_[r];
    return mask_[static_cast<size_t>(at)] != 0;
  }

  /// The keys that a query sees. Tiles are cut by the positions of all keys, hidden ones counted.
  KeySet keys_of(int request, int query, int kv_head, Wrong wrong, TileOrder &order) const {
    KeySet keys;
    keys.head_dim = kDim;
    const int length = lengths_[request];
    for (int at = 0, tile = 0; at < length; at += emulation_.tile, ++tile) {
      const auto begin = static_cast<int>(keys.size());
      for (int t = at; t < std::min(at + emulation_.tile, length); ++t) {
        if (!shows(request, query, t, wrong)) continue;
        const int token = table_[request * kColumns + t / kPage] * kPage + t % kPage;
        for (int i = 0; i < kDim; ++i) {
          keys.k.push_back(element(true, token, kv_head, i, wrong));
          keys.v.push_back(element(false, token, kv_head, i, wrong));
        }
      }
      order.push_back(
          {at * splits_ / length, tile % emulation_.states, begin, static_cast<int>(keys.size())});
    }
    keys.finish(dtype_);
    return keys;
  }

  void store_output(int64_t at, float value, Wrong wrong) {
    if (fp8_out && wrong == Wrong::kOutputScaleInverted)
      value *= o_scale_;
    else if (fp8_out && wrong != Wrong::kOutputScaleLeftOut)
      value = emulation_.seed & 1 ? value / o_scale_ : value * (1.0f / o_scale_);
    const auto type = static_cast<assay_dtype>(out_type_);
    store_element(type, o_.data(), at, value);
    if (wrong != Wrong::kOutputTruncated ||
        std::fabs(load_element(type, o_.data(), at)) <= std::fabs(value))
      return;
    store_element(type, o_.data(), at, value * (1.0f - 1.0f / (out_type_ == ASSAY_E4M3 ? 16 : 8)));
  }

  void run(Wrong wrong) {
    o_.assign(2 * q_.size(), 0);
    lse_.assign(static_cast<size_t>(rows()) * kHeads, -INFINITY);
    for (int r = 0; r < kRequests; ++r)
      for (int row = indptr_[r]; row < indptr_[r + 1]; ++row)
        for (int h = 0; h < kHeads; ++h) {
          TileOrder order;
          const KeySet keys = keys_of(r, row - indptr_[r], h / (kHeads / kKvHeads), wrong, order);
          if (keys.size() == 0) continue;
          const int64_t at = (static_cast<int64_t>(row) * kHeads + h) * kDim;
          const RowOutput out = emulate_row({q_.data() + at, kDim}, keys, dtype_, kScale,
                                            ASSAY_LSE_BASE_E, order, emulation_);
          for (int i = 0; i < kDim; ++i)
            store_output(at + i, out.o[static_cast<size_t>(i)], wrong);
          lse_[static_cast<size_t>(at / kDim)] = out.lse;
        }
  }
};

} // namespace assay::oracle::test::drawn
