// SPDX-License-Identifier: Apache-2.0
// Random calls with what the C ABI of our kernels has no room for, and the judge's has: fp8 queries
// and outputs, roundings of K and V, scales of tokens, masks, heads of unequal groups.
#pragma once

#include "kernels/abi/assay_judge.h"
#include "oracle/tests/random_call.h"

namespace assay::oracle::test {

/// What is made of a random call.
enum class Other { kOutputs, kQueries, kKvFormat, kTokenScales, kMasks, kHeads };
inline constexpr Other kOthers[] = {Other::kOutputs,     Other::kQueries, Other::kKvFormat,
                                    Other::kTokenScales, Other::kMasks,   Other::kHeads};

class OtherCall {
public:
  OtherCall(RandomCall &call, unsigned seed, CallMemory &memory)
      : call_(call), rows_(call.rows), random_(seed), memory_(memory) {}

  void make(Other other) {
    if (other == Other::kOutputs) write_fp8();
    if (other == Other::kQueries) quantise_queries();
    if (other == Other::kKvFormat) round_keys();
    if (other == Other::kTokenScales) scale_tokens();
    if (other == Other::kMasks) hide_keys();
    if (other == Other::kHeads) share_unequally();
    call_.fill();
  }

private:
  int among(std::initializer_list<int> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }
  float number(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  }
  size_t pairs() const {
    return static_cast<size_t>(rows_.out.rows()) * static_cast<size_t>(rows_.out.heads);
  }

  void write_fp8() {
    rows_.out.dtype = among({ASSAY_E4M3, ASSAY_E5M2, ASSAY_FP32});
    if (is_fp8(rows_.out.dtype)) rows_.o_scale = number(0.01f, 2.0f);
  }

  void quantise_queries() {
    const size_t count = pairs() * static_cast<size_t>(rows_.head_dim);
    auto *q = memory_.make<unsigned char>(count);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < count; ++i)
      store_element(rows_.kv_dtype, q, static_cast<int64_t>(i), normal(random_));
    rows_.q = q;
    rows_.q_dtype = rows_.kv_dtype;
    if (random_() % 4 == 0) return;
    for (size_t i = 0; i < pairs(); ++i)
      rows_.q_scale.push_back(number(0.3f, 2.0f));
  }

  void round_keys() {
    call_.model.arithmetic.kv_format =
        among({ASSAY_FORMAT_CALL, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16, ASSAY_FORMAT_TF32});
  }

  /// A key's elements lie side by side, so its number is where it begins over their stride.
  void scale_tokens() {
    const int kv_heads = call_.options.kv_heads, blocks = among({1, 2, 4});
    KeyPool &pool = rows_.pools[0];
    const auto keys = static_cast<size_t>(call_.params.kv.max_pages * call_.params.batch *
                                          call_.params.kv.page_size);
    const size_t count = keys * static_cast<size_t>(kv_heads * blocks);
    float *scales[2];
    for (float *&of : scales) {
      of = memory_.make<float>(count);
      for (size_t i = 0; i < count; ++i)
        of[i] = random_() % 2000 == 0 ? 0x1p90f : number(0.01f, 0.1f);
    }
    pool.k_scales = {scales[0], blocks, int64_t{kv_heads} * blocks, blocks, 1};
    pool.v_scales = {scales[1], blocks, int64_t{kv_heads} * blocks, blocks, 1};
    for (KeyRun &run : rows_.runs) {
      run.k_scale_at = run.k_at / pool.k_stride_token * kv_heads * blocks;
      run.v_scale_at = run.v_at / pool.v_stride_token * kv_heads * blocks;
    }
    if (random_() % 2) rows_.kv_dtype = ASSAY_INT8; // every byte is one of its numbers
    for (HeadInput &head : rows_.heads)
      head.k_scale = head.v_scale = 1.0f;
  }

  /// Each row has a list of its own, of the keys that are left.
  void hide_keys() {
    std::vector<KeyRun> runs;
    std::vector<int64_t> first{0};
    for (int row = 0; row < rows_.out.rows(); ++row) {
      const auto at = static_cast<size_t>(row);
      const auto list = static_cast<size_t>(rows_.list[at]);
      int32_t shown = 0, last = -1, from = -1;
      for (auto i = static_cast<size_t>(rows_.first_run[list]);
           i < static_cast<size_t>(rows_.first_run[list + 1]); ++i)
        for (int32_t slot = 0; slot < rows_.runs[i].count; ++slot) {
          const int32_t key = rows_.runs[i].position + slot;
          if (key < rows_.begin[at] || key >= rows_.end[at] || random_() % 3 == 0) continue;
          KeyRun one = rows_.runs[i];
          one.k_at += slot * rows_.pools[0].k_stride_token;
          one.v_at += slot * rows_.pools[0].v_stride_token;
          one.position = shown++;
          one.count = 1;
          runs.push_back(one);
          from = from < 0 ? key : from;
          last = key;
        }
      first.push_back(static_cast<int64_t>(runs.size()));
      rows_.list[at] = row;
      rows_.begin[at] = 0;
      rows_.end[at] = shown;
      rows_.span.push_back(from < 0 ? 0 : last - from + 1);
    }
    rows_.runs = runs;
    rows_.first_run = first;
    rows_.level_position.assign(first.size() - 1, 0);
    rows_.behind.assign(rows_.list.size(), 0);
    call_.model.order = nullptr;
  }

  void share_unequally() {
    for (size_t head = 0; head < rows_.heads.size(); ++head)
      rows_.heads[head].kv_head = head < 2 ? 0 : 1;
  }

  RandomCall &call_;
  AttentionRows &rows_;
  std::mt19937 random_;
  CallMemory &memory_;
};

/// Options of a call that `other` can be made of.
inline Options options_for(Other other, std::mt19937 &random) {
  Options o = random_group_options(random);
  const bool queries = other == Other::kQueries, scales = other == Other::kTokenScales;
  if (queries || scales || other == Other::kKvFormat)
    o.kv_dtype = !scales && random() % 2 ? ASSAY_E5M2 : ASSAY_E4M3;
  if (other == Other::kMasks) o.alibi = false;
  if (other == Other::kHeads) o.kv_heads = 2, o.group = 3;
  if (scales) {
    o.scales = o.specials = false;
    o.product_format = o.qk_sum_format = ASSAY_FORMAT_FP32;
    o.dtype = ASSAY_BF16;
    o.kv_heads = 2;
    o.group = std::min(o.group, 3);
  }
  if (o.score_format != ASSAY_FORMAT_FP32) o.size = 3.0f;
  o.v_size = 1.0f;
  if (random() % 3 == 0) o.tile = 0;
  return o;
}

} // namespace assay::oracle::test
