// SPDX-License-Identifier: Apache-2.0
// What some decode calls do to a score before the softmax: causal order, sliding window, logits
// softcap, ALiBi. And the sink, which joins a finished row.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/common/attention_tile.cuh"
#include "kernels/common/query_tokens.cuh"

namespace assay::ASSAY_TARGET {

inline constexpr float kLog2E = 1.44269504f; // natural to base-2 logits

/// cap * tanh(x / cap) of a base-2 logit x, where cap is in base 2, too. It uses
///   tanh(y) = 1 - 2 / (1 + 2^(2 y log2 e)), and 2 y log2 e = x * 2 / cap with cap in natural
///   units.
/// The absolute error of the tanh is below 3 * 2^-22. In units of 2^-22 it is the sum of
///   0.5 for exp2, 0.2 for its argument, 1.5 for reciprocal and sum, 0.25 for the difference.
ASSAY_DEVICE float softcap(float x, const FeatureParams &features) {
  const float power = arch::exp2_approx(x * features.two_over_softcap);
  return features.softcap_log2 * (1.0f - 2.0f * arch::rcp_approx(1.0f + power));
}

/// The features of the query rows that one thread has in an AttentionTile. Row r of a (request, kv
/// head) is query token r / gqa_group_size and head r % gqa_group_size of the group.
template <class Tile>
class ScoreFeatures {
  static constexpr int kRowTiles = Tile::kRows / 8;
  static_assert(kRowTiles <= 2, "tokens_ holds four rows");

public:
  ASSAY_DEVICE ScoreFeatures(const AttentionParams &attention, const FeatureParams &features,
                             int kv_head, int first_row)
      : features_(features),
        transforms_(features.softcap_log2 > 0.0f || features.alibi_slopes != nullptr) {
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      ASSAY_UNROLL
    for (int j = 0; j < 2; ++j) {
      const int row = first_row + Tile::row_index(n, j);
      tokens_ |= static_cast<uint32_t>(row / attention.gqa_group_size) << shift_of(n, j);
      slope_[n][j] = 0.0f;
      if (features.alibi_slopes != nullptr && row < features.query_rows)
        slope_[n][j] = kLog2E * arch::global_load_readonly(features.alibi_slopes +
                                                           kv_head * attention.gqa_group_size +
                                                           row % attention.gqa_group_size);
    }
  }

  /// The scale that makes base-2 logits of the scores that apply() leaves.
  ASSAY_DEVICE float scale_after(float scale) const { return transforms_ ? 1.0f : scale; }

  /// Begins an item, which has keys below kv_end of a request of seq_len tokens.
  ASSAY_DEVICE void begin(int request, int seq_len, int kv_end) {
    const int tokens = request_tokens(features_.shard, request, seq_len);
    first_position_ = tokens - query_tokens(features_, request).count;
    kv_end_ = kv_end;
    // Every row sees every key from last_clipped_ up to first_masked_.
    const int seen_by_first = keys_before(features_.shard, first_position_ + 1);
    first_masked_ = seen_by_first < kv_end ? seen_by_first : kv_end;
    last_clipped_ = features_.window_keys > 0
                        ? keys_before(features_.shard, tokens - features_.window_keys)
                        : 0;
  }

  /// Makes logits of the scores of the tile at `base`, where there is a softcap or ALiBi, and -inf
  /// of the scores of keys that a row does not see.
  ASSAY_DEVICE void apply(Tile &tile, int base, float scale) const {
    if (transforms_) transform(tile, base, scale);
    if (base < last_clipped_ || base + Tile::kTokenTiles * 16 > first_masked_) mask(tile, base);
  }

private:
  ASSAY_DEVICE void transform(Tile &tile, int base, float scale) const {
    tile.for_each_score([&](int, int, int, float &score) {
      score *= scale;
      if (features_.softcap_log2 > 0.0f) score = softcap(score, features_);
    });
    if (features_.alibi_slopes == nullptr) return;
    tile.for_each_score([&](int n, int j, int token, float &score) {
      const int distance = position_of(features_.shard, base + token) - position(n, j);
      score += slope_[n][j] * static_cast<float>(distance);
    });
  }

  /// A row's bounds are indices in the cache, so that a key costs one comparison.
  ASSAY_DEVICE void mask(Tile &tile, int base) const {
    tile.for_each_score([&](int n, int j, int token, float &score) {
      const int seen = keys_before(features_.shard, position(n, j) + 1);
      if (base + token >= (seen < kv_end_ ? seen : kv_end_)) score = arch::neg_infinity();
    });
    if (features_.window_keys == 0) return;
    tile.for_each_score([&](int n, int j, int token, float &score) {
      const int clipped = keys_before(features_.shard, position(n, j) + 1 - features_.window_keys);
      if (base + token < clipped) score = arch::neg_infinity();
    });
  }

  /// Where the token of a row stands in tokens_.
  static ASSAY_DEVICE constexpr int shift_of(int n, int j) { return 8 * (2 * n + j); }
  ASSAY_DEVICE int token_of(int n, int j) const {
    return static_cast<int>(tokens_ >> shift_of(n, j) & 255u);
  }
  ASSAY_DEVICE int position(int n, int j) const { return first_position_ + token_of(n, j); }

  const FeatureParams &features_;
  bool transforms_;
  int first_position_ = 0, kv_end_ = 0, first_masked_ = 0, last_clipped_ = 0;
  // The query tokens of the rows, 8 bits each: one register, and the largest instantiation spills
  // with one for each row.
  uint32_t tokens_ = 0;
  float slope_[kRowTiles][2]; // base 2
};

/// Adds a key to a finished row (normalised o, base-2 LSE). The logit of the key is `sink`, in the
/// natural base, and its value is 0.
template <int kDims>
ASSAY_DEVICE void join_sink(float (&o)[kDims], float &lse2, float sink) {
  const float sink2 = sink * kLog2E;
  const float m = arch::max_num(lse2, sink2);
  if (arch::is_neg_infinity(m)) return;
  const float keys = arch::exp2_approx(lse2 - m), mass = keys + arch::exp2_approx(sink2 - m);
  const float weight = keys * arch::rcp_approx(mass);
  ASSAY_UNROLL
  for (int i = 0; i < kDims; ++i)
    o[i] *= weight;
  lse2 = m + arch::log2_approx(mass);
}

/// Applies v_scale and the sink to a slice of a finished row. `head` is the query head.
template <class Types, bool kFeatures, class R, int kDims>
ASSAY_DEVICE void finish_row(const FeatureParams &features, int kv_head, int head, R (&o)[kDims],
                             R &lse2) {
  if constexpr (Types::kFp8) {
    if (features.v_scale != nullptr) {
      const float scale =
          arch::global_load_readonly(features.v_scale + kv_head * features.v_scale_stride);
      ASSAY_UNROLL
      for (int i = 0; i < kDims; ++i)
        o[i] *= scale;
    }
  }
  if constexpr (kFeatures) {
    if (features.sinks != nullptr)
      join_sink(o, lse2, arch::global_load_readonly(features.sinks + head));
  }
}

} // namespace assay::ASSAY_TARGET
