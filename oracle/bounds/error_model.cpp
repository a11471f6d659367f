// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/error_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "oracle/bounds/declaration.h"
namespace assay::oracle {
namespace {

void set_row_sum(ErrorModel &model, const Format *format) {
  model.sum_unit = format != nullptr ? format->unit_roundoff : model.unit;
  model.sum_limit = format != nullptr ? format->max_finite : kFp32Limit;
  // Subnormal sums in fp32's range of exponents are below every budget's floor.
  if (format != nullptr && std::ldexp(1.0, format->min_exponent) > 2 * kFloor)
    model.sum_floor = half_ulp(*format, 0.0);
  model.entry_unit = format != nullptr ? model.sum_unit : 0.0;
}

/// Weights enter as they meet V; nothing else of the sum is rounded but to fp32.
void sum_rounded_weights(ErrorModel &model) {
  set_row_sum(model, nullptr);
  model.sums_rounded_p = true;
  model.entry_unit = model.p_unit;
  model.entry_floor = model.p_floor;
}

void round_scores(ErrorModel &model, const Format *format) {
  model.score_limit = kFp32Limit;
  if (format == nullptr) return;
  model.score_unit = format->unit_roundoff;
  model.score_floor = half_ulp(*format, 0.0);
  model.score_limit = std::min(kFp32Limit, format->max_finite);
}

/// What becomes of an element of Q before its product, and of products before their sum.
void round_products(ErrorModel &model, const assay_arithmetic &arithmetic, assay_dtype operand,
                    int head_dim) {
  constexpr double kScaled = 4 * kU; // at most four products with scales in fp32
  const Format *q = rounding_of(arithmetic.q_format, operand);
  const Format *product = rounding_of(arithmetic.product_format, operand);
  const Format *sum = rounding_of(arithmetic.qk_sum_format, operand);
  model.q_limit = model.qk_limit = kFp32Limit;
  model.scales_query = q != nullptr || product != nullptr || sum != nullptr;
  if (!model.scales_query) return;
  model.q_unit = kScaled + (q != nullptr ? q->unit_roundoff * (1.0 + kScaled) : 0.0);
  model.q_floor = kFloor + (q != nullptr ? least_error(*q) : 0.0);
  if (q != nullptr) {
    model.q_limit = std::min(kFp32Limit, q->max_finite);
    model.q_normal = std::ldexp(1.0, q->min_exponent);
  }
  if (product == nullptr && sum == nullptr) return;
  // Products that are rounded are added one by one, whatever sums those of P and V.
  const double unit = sum != nullptr ? sum->unit_roundoff : 0.0;
  model.dot = std::expm1(head_dim * (std::log1p(model.kappa) + std::log1p(unit)));
  model.dot_floor = head_dim * (kFloor + (sum != nullptr ? least_error(*sum) : 0.0));
  for (const Format *format : {product, sum}) {
    if (format == nullptr) continue;
    const double grown = 1.0 + format->unit_roundoff;
    model.product_unit = (1.0 + model.product_unit) * grown - 1.0;
    model.product_floor = model.product_floor * grown + head_dim * least_error(*format);
    model.qk_limit = std::min(model.qk_limit, format->max_finite);
  }
}

/// Parts of a row that hold no key add exact zeros, so no more of them count than there are keys.
/// But the one that holds them all is still scaled.
int of_keys(int declared, size_t keys) {
  return static_cast<int>(
      std::min(static_cast<size_t>(std::max(declared, 1)), std::max(keys, size_t{2})));
}

} // namespace

ErrorModel make_error_model(const assay_arithmetic &arithmetic, assay_dtype dtype, int head_dim) {
  require_declaration(arithmetic);
  if (head_dim <= 0) throw std::invalid_argument("oracle: head_dim is not positive");
  ErrorModel model{};
  model.block = arithmetic.mma_block;
  int steps = head_dim;
  model.unit = arithmetic.accumulator == ASSAY_ACCUMULATOR_FP64 ? 0x1p-53 : kU;
  model.kappa = model.unit;
  if (model.block > 0) {
    model.alignment = (model.block + 1) * std::ldexp(1.0, -arithmetic.mma_fraction_bits);
    model.kappa = (model.alignment + 0x1p-23) * (1.0 + 0x1p-16);
    steps = (head_dim + model.block - 1) / model.block;
  }
  model.dot = std::expm1(steps * std::log1p(model.kappa));
  model.dot_floor = steps * kFloor;
  model.operand_normal = model.p_normal = std::ldexp(1.0, format_of(dtype).min_exponent);
  model.p_format = rounding_of(arithmetic.p_format, dtype);
  model.p_limit = INFINITY;
  if (model.p_format != nullptr) {
    model.p_limit = std::ldexp(model.p_format->overflow_threshold, -arithmetic.p_scale_log2);
    model.p_unit = model.p_format->unit_roundoff;
    model.p_scale_log2 = arithmetic.p_scale_log2;
    model.p_normal = std::ldexp(1.0, model.p_format->min_exponent - model.p_scale_log2);
    model.p_floor = std::ldexp(least_error(*model.p_format), -model.p_scale_log2);
    model.replays_p = arithmetic.p_format != ASSAY_FORMAT_TF32;
  }
  if (arithmetic.sum_format == ASSAY_FORMAT_CALL)
    sum_rounded_weights(model);
  else
    set_row_sum(model, rounding_of(arithmetic.sum_format, dtype));
  round_scores(model, rounding_of(arithmetic.score_format, dtype));
  round_products(model, arithmetic, dtype, head_dim);
  model.conversion = arithmetic.exponential == ASSAY_EXP_NATURAL ? kScaleError : 0.0;
  model.exp2 = arithmetic.exp2_rel_error;
  model.log2 = arithmetic.log2_abs_error;
  model.rcp = arithmetic.rcp_rel_error;
  model.tanh = arithmetic.tanh_abs_error;
  model.q_error = arithmetic.q_abs_error;
  model.sum_depth = arithmetic.sum_depth;
  model.tile = std::max(arithmetic.tile_tokens, 1);
  model.states = std::max(arithmetic.max_parallel_states, 1);
  return model;
}

bool plain_scores(const assay_arithmetic &a) {
  return a.q_format == ASSAY_FORMAT_FP32 && a.product_format == ASSAY_FORMAT_FP32 &&
         a.qk_sum_format == ASSAY_FORMAT_FP32 && a.score_format == ASSAY_FORMAT_FP32;
}

void store_partials(ErrorModel &model, const Format *format) {
  model.partial_limit = kFp32Limit;
  if (format == nullptr) return;
  model.partial_unit = format->unit_roundoff;
  model.partial_floor = half_ulp(*format, 0.0);
  model.partial_limit = std::min(kFp32Limit, format->max_finite);
}

int64_t pv_blocks(const ErrorModel &model, int keys) {
  return model.block > 0 ? (keys + model.block - 1) / model.block : keys;
}

int64_t pv_blocks(const ErrorModel &model, const KeyTile &tile) {
  const int lead = model.block > 0 ? tile.lead % model.block : 0;
  return pv_blocks(model, lead + tile.end - tile.begin);
}

RowShape shape_without_order(const ErrorModel &model, size_t keys, size_t span, int max_splits,
                             int stages) {
  // One more tile than n / tile: a split or a state may begin inside a tile. A tile whose keys are
  // all hidden changes nothing.
  const int64_t tiles =
      static_cast<int64_t>(std::min(std::max(span, keys) / static_cast<size_t>(model.tile), keys)) +
      2;
  const int64_t blocks = std::min(tiles * pv_blocks(model, model.tile), static_cast<int64_t>(keys));
  const int splits = max_splits > 1 ? of_keys(max_splits, keys) : 1;
  const int states = model.states > 1 ? of_keys(model.states, keys) : 1;
  return {tiles, blocks, states, splits, stages, static_cast<int64_t>(keys), 0};
}

RowShape shape_of(const ErrorModel &model, const TileOrder &order, int stages) {
  struct Counts {
    int64_t tiles = 0, blocks = 0, keys = 0;
  };
  std::map<std::pair<int, int>, Counts> per_state;
  size_t keys = 0;
  std::map<int, int> states_of_split;
  for (const KeyTile &tile : order) {
    if (tile.begin == tile.end) continue;
    auto [at, added] = per_state.try_emplace({tile.split, tile.state});
    if (added) ++states_of_split[tile.split];
    at->second.tiles += 1;
    at->second.blocks += pv_blocks(model, tile);
    at->second.keys += tile.end - tile.begin;
    keys += static_cast<size_t>(tile.end - tile.begin);
  }
  RowShape shape{1, 1, 1, 1, stages, 1, 0};
  for (const auto &[key, counts] : per_state) {
    shape.tiles = std::max(shape.tiles, counts.tiles);
    shape.pv_blocks = std::max(shape.pv_blocks, counts.blocks);
    shape.keys = std::max(shape.keys, counts.keys);
  }
  // A kernel may merge its empty states too; they add exact zeros but the scale factor is applied.
  for (const auto &[split, states] : states_of_split)
    shape.states = std::max(shape.states, states);
  if (model.states > 1) shape.states = std::max(shape.states, of_keys(model.states, keys));
  shape.splits = std::max<int>(1, static_cast<int>(states_of_split.size()));
  return shape;
}

} // namespace assay::oracle
