// SPDX-License-Identifier: Apache-2.0
#include "oracle/tests/emulation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "oracle/exact/dtype.h"
#include "oracle/tests/emulated_operands.h"
#include "oracle/tests/emulated_ops.h"

namespace assay::oracle::test {
namespace {

constexpr int kLanes = 4; // lanes of a row sum
constexpr float kNegInf = -INFINITY;

struct State {
  float m = kNegInf, d = 0.0f;
  std::vector<float> o, low; // low: of the second part of P
};

struct Row {
  std::span<const float> q;
  const KeySet &keys;
  const Emulation &emulation;
  Ops ops;
  float scale; // base 2
  RowFeatures features;
  float softmax_scale;                         // from scores to logits: 1 behind a map
  const Format *p_format, *sum_format;         // null: fp32
  const Format *partial_format, *score_format; // null: not rounded
  const Format *q_format, *product_format, *qk_sum_format, *output_format;
  float log2e;     // from natural logits to this kernel's: 1 in the natural base
  int marked_tile; // where the single-tile mutants strike
  int tile_index = 0;
  bool rescale_struck = false;
};

bool strikes(const Row &row, Mutant mutant) {
  return row.emulation.mutant == mutant && row.tile_index == row.marked_tile;
}

// The rescale mutants need a tile at which the maximum grows: the first one from the marked tile
// on.
bool strikes_rescale(Row &row, float alpha) {
  const Mutant m = row.emulation.mutant;
  if (m != Mutant::kOutputNotRescaled && m != Mutant::kSumNotRescaled) return false;
  if (row.rescale_struck || row.tile_index < row.marked_tile) return false;
  if (!(alpha > 0.0f && alpha < 1.0f)) return false;
  return row.rescale_struck = true;
}

// Softcap and ALiBi work on base-2 logits.
float map_score(const Row &row, float score, int key) {
  const RowFeatures &f = row.features;
  if (!f.mapped()) return score;
  const Mutant mutant = row.emulation.mutant;
  float x = score * row.scale;
  if (f.softcap > 0.0f && mutant != Mutant::kNoSoftcap) {
    const float cap = f.softcap * row.log2e;
    x = cap * row.ops.tanh(x * (1.0f / cap));
  }
  if (!f.alibi) return x;
  const int last = static_cast<int>(row.keys.size()) - 1 + (mutant == Mutant::kAlibiOffByOne);
  return x + f.slope * row.log2e * static_cast<float>(key - last);
}

// As it is, or times the scale, which is taken off again exactly enough to be seen by nobody.
float round_score(const Row &row, float score) {
  if (row.score_format == nullptr) return score;
  if (row.emulation.seed >> 22 & 1) return Ops::round(*row.score_format, score);
  const double scale = row.scale;
  return static_cast<float>(round_to(*row.score_format, score * scale) / scale);
}

// Products that are rounded, or whose sums are: one behind the other, or in halves of halves.
double sum_products(const Row &row, const float *k, int begin, int end) {
  const auto add = [&](double a, double b) {
    return row.qk_sum_format ? round_to(*row.qk_sum_format, a + b)
                             : static_cast<double>(static_cast<float>(a + b));
  };
  const uint64_t seed = row.emulation.seed;
  const auto product = [&](int i) {
    const double exact = static_cast<double>(row.q[static_cast<size_t>(i)]) * k[i];
    if (row.product_format) return round_to(*row.product_format, exact);
    return seed >> 42 & 1 ? exact : round_to(*row.qk_sum_format, exact); // fused, or not
  };
  if (seed >> 43 & 1 && end - begin > 1) {
    const int middle = (begin + end) / 2;
    return add(sum_products(row, k, begin, middle), sum_products(row, k, middle, end));
  }
  double sum = 0.0;
  for (int i = begin; i < end; ++i)
    sum = add(sum, product(i));
  return sum;
}

float score_of(const Row &row, const float *k) {
  const int dim = row.keys.head_dim;
  if (row.product_format != nullptr || row.qk_sum_format != nullptr)
    return static_cast<float>(sum_products(row, k, 0, dim));
  return row.ops.accumulate(0.0f, row.q.data(), k, dim, 1, row.q_format);
}

std::vector<float> tile_scores(const Row &row, const KeyTile &tile) {
  std::vector<float> s;
  for (int j = tile.begin; j < tile.end; ++j) {
    const float *k = row.keys.key(static_cast<size_t>(j));
    float score = score_of(row, k);
    if (row.emulation.mutant == Mutant::kScoresInBf16) score = round_bits(score, 8);
    s.push_back(map_score(row, round_score(row, score), j));
  }
  return s;
}

// A row sum after an operation whose exact result is `x`. Half of the kernels round what enters
// too.
float sum_step(const Row &row, double x) {
  return static_cast<float>(row.sum_format ? round_to(*row.sum_format, x) : x);
}
float round_weight(const Row &row, float p) {
  const int scale = row.emulation.p_scale_log2;
  return std::ldexp(row.ops.narrow(*row.p_format, std::ldexp(p, scale)), -scale);
}
float entering(const Row &row, float p) {
  if (row.emulation.sum_format == ASSAY_FORMAT_CALL) return row.p_format ? round_weight(row, p) : p;
  return row.emulation.seed >> 21 & 1 ? sum_step(row, p) : p;
}
double exact(float a, float b, float c) { // a b + c
  return static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
}

float row_sum(const Row &row, const std::vector<float> &p) {
  float lanes[kLanes] = {};
  for (size_t j = 0; j < p.size(); ++j)
    lanes[j % kLanes] = sum_step(row, exact(entering(row, p[j]), 1.0f, lanes[j % kLanes]));
  if (strikes(row, Mutant::kSumMissesLane)) lanes[1] = 0.0f;
  const float low = sum_step(row, exact(lanes[0], 1.0f, lanes[1]));
  const float high = sum_step(row, exact(lanes[2], 1.0f, lanes[3]));
  return sum_step(row, exact(low, 1.0f, high));
}

void add_tile(Row &row, const KeyTile &tile, State &state) {
  const std::vector<float> s = tile_scores(row, tile);
  const float m = std::max(state.m, *std::max_element(s.begin(), s.end()));
  const bool scaled = row.emulation.maxima == Maxima::kScaled;
  const float below = scaled ? state.m * row.softmax_scale - m * row.softmax_scale
                             : (state.m - m) * row.softmax_scale;
  const float alpha = state.m == kNegInf ? 0.0f : row.ops.exponential(below);
  const bool difference_first = row.emulation.maxima == Maxima::kDifferenceFirst;
  const float offset = -(row.softmax_scale * m);
  std::vector<float> p;
  for (float score : s)
    p.push_back(row.ops.exponential(difference_first ? (score - m) * row.softmax_scale
                                                     : std::fma(score, row.softmax_scale, offset)));
  const bool rescale_bug = strikes_rescale(row, alpha);
  const bool keep_sum = rescale_bug && row.emulation.mutant == Mutant::kSumNotRescaled;
  state.d = sum_step(row, exact(state.d, keep_sum ? 1.0f : alpha, row_sum(row, p)));
  if (!rescale_bug || row.emulation.mutant != Mutant::kOutputNotRescaled) {
    for (float &x : state.o)
      x *= alpha;
    for (float &x : state.low)
      x *= alpha;
  }
  std::vector<float> low;
  for (float &x : p) {
    const float whole = x;
    const auto round = [&](float p) { return round_weight(row, p); };
    if (row.p_format) x = round(x);
    low.push_back(row.p_format ? round(whole - x) : 0.0f);
    if (strikes(row, Mutant::kTilePFourBits)) x = round_bits(x, 4);
  }
  // Weights that nothing rounds are operands of fp32, whatever V is.
  const Format &operand = row.p_format ? *row.p_format : format_of(ASSAY_FP32);
  const bool stale = strikes(row, Mutant::kStaleValueTile) && tile.begin >= row.emulation.tile;
  const int first = stale ? tile.begin - row.emulation.tile : tile.begin;
  for (int i = 0; i < row.keys.head_dim; ++i) {
    float &o = state.o[static_cast<size_t>(i)];
    o = row.ops.accumulate(o, p.data(), row.keys.value(static_cast<size_t>(first)) + i,
                           static_cast<int>(p.size()), row.keys.head_dim, &operand);
    if (row.emulation.mutant == Mutant::kAccumulatorInBf16) o = round_bits(o, 8);
    if (row.emulation.p_parts == 1) continue;
    float &o_low = state.low[static_cast<size_t>(i)];
    o_low = row.ops.accumulate(o_low, low.data(), row.keys.value(static_cast<size_t>(first)) + i,
                               static_cast<int>(low.size()), row.keys.head_dim, &operand);
  }
  state.m = m;
  ++row.tile_index;
}

State merge_states(const Row &row, const std::vector<State> &states) {
  State merged;
  merged.o.assign(static_cast<size_t>(row.keys.head_dim), 0.0f);
  merged.low = merged.o;
  for (const State &state : states)
    merged.m = std::max(merged.m, state.m);
  if (merged.m == kNegInf) return merged;
  for (const State &state : states) {
    if (state.m == kNegInf) continue;
    const Maxima maxima = row.emulation.maxima;
    const bool scaled = maxima == Maxima::kScaled || maxima == Maxima::kScaledAtMerge;
    const float below = scaled ? state.m * row.softmax_scale - merged.m * row.softmax_scale
                               : (state.m - merged.m) * row.softmax_scale;
    float f = row.ops.exponential(below);
    if (row.emulation.mutant == Mutant::kStatesIgnoreMaxima) f = 1.0f;
    merged.d = row.sum_format ? sum_step(row, exact(f, state.d, merged.d)) : merged.d + f * state.d;
    for (size_t i = 0; i < merged.o.size(); ++i) {
      merged.o[i] += f * state.o[i];
      merged.low[i] += f * state.low[i];
    }
  }
  return merged;
}

// Splits through normalised fp32 O and base-2 LSE.
struct Partial {
  std::vector<float> o;
  float lse;
};

Partial finish_split(const Row &row, const State &state) {
  Partial partial{state.o, kNegInf};
  for (size_t i = 0; i < partial.o.size(); ++i)
    partial.o[i] += state.low[i];
  if (state.m == kNegInf) return partial;
  const float inverse = row.ops.rcp(state.d);
  for (float &x : partial.o)
    x *= inverse;
  partial.lse = row.softmax_scale * state.m + row.ops.logarithm(state.d);
  return partial;
}

// What a merge reads: O as it was stored. Half of the kernels store it with v_scale in it.
std::vector<Partial> stored(const Row &row, std::vector<Partial> partials) {
  if (row.partial_format == nullptr) return partials;
  const bool scaled =
      row.features.fp8 && row.features.v_scale != 0.0f && row.emulation.seed >> 23 & 1;
  const double scale = scaled ? row.features.v_scale : 1.0;
  for (Partial &partial : partials)
    for (float &x : partial.o)
      x = static_cast<float>(round_to(*row.partial_format, x * scale) / scale);
  return partials;
}

Partial combine(const Row &row, const std::vector<Partial> &partials) {
  Partial result{std::vector<float>(static_cast<size_t>(row.keys.head_dim), 0.0f), kNegInf};
  const Mutant mutant = row.emulation.mutant;
  for (const Partial &partial : partials)
    result.lse = std::max(result.lse, partial.lse);
  if (result.lse == kNegInf) return result;
  float sum = 0.0f;
  for (const Partial &partial : partials) {
    if (partial.lse == kNegInf) continue;
    float below = partial.lse - result.lse;
    if (mutant == Mutant::kMergeMixesBases) below *= 1.44269504f;
    float w = row.ops.exponential(below);
    if (mutant == Mutant::kMergeIgnoresMaxima) w = row.ops.exponential(below * 0.0f);
    sum += w;
    for (size_t i = 0; i < result.o.size(); ++i)
      result.o[i] += w * partial.o[i];
  }
  if (mutant == Mutant::kMergeNormaliserOff) sum *= 1.0f + 0x1p-8f;
  const float inverse = row.ops.rcp(sum);
  for (float &x : result.o)
    x *= inverse;
  result.lse += row.ops.logarithm(sum);
  return result;
}

// The sink as one more state: O = 0, LSE its logit.
Partial merge_sink(const Row &row, const Partial &partial) {
  if (!row.features.sinks) return partial;
  const std::vector<float> zeros(partial.o.size(), 0.0f);
  return combine(row, {partial, {zeros, row.features.sink * row.log2e}});
}

float store(const Row &row, assay_dtype dtype, float x) {
  const auto round = [&] { return static_cast<float>(round_to(format_of(dtype), x)); };
  if (!row.emulation.round_output) return x;
  if (row.emulation.mutant != Mutant::kOutputTruncated) return round();
  const float rounded = round();
  if (std::fabs(rounded) <= std::fabs(x)) return rounded;
  const double spacing = 2 * half_ulp(format_of(dtype), std::fabs(x));
  return rounded - std::copysign(static_cast<float>(spacing), x);
}

float before_scale(const Row &row, assay_dtype dtype, float x) {
  return row.emulation.rounded_before_scale && row.emulation.round_output
             ? Ops::round(format_of(dtype), x)
             : x;
}

// O from its accumulator to its dtype. O may be rounded to a format of its own: before v_scale,
// behind it, or between it and the rounding of O before it.
float finish_output(const Row &row, assay_dtype dtype, float x) {
  const bool narrows = row.output_format != nullptr && row.emulation.round_output;
  const auto place = row.emulation.seed >> 44 & 3;
  const auto narrow = [&](bool here) {
    if (narrows && here) x = Ops::round(*row.output_format, x);
  };
  narrow(place == 0);
  if (row.features.fp8) {
    x = before_scale(row, dtype, x);
    narrow(place == 1);
    x *= row.features.v_scale;
  }
  narrow(place > 1 || (place == 1 && !row.features.fp8));
  return store(row, dtype, x);
}

} // namespace

assay_arithmetic declared(const Emulation &emulation) {
  assay_arithmetic a{};
  a.mma_block = emulation.block;
  a.mma_fraction_bits = emulation.fraction_bits;
  const bool fp32 = emulation.block == 0 && emulation.p_format == ASSAY_FORMAT_CALL;
  a.p_format = fp32 ? ASSAY_FORMAT_FP32 : emulation.p_format;
  a.sum_format = emulation.sum_format;
  a.partial_format = emulation.partial_format;
  a.stored_merges = a.partial_format != ASSAY_FORMAT_FP32 ? emulation.stages : 0;
  a.score_format = emulation.score_format;
  a.p_scale_log2 = emulation.p_scale_log2;
  a.kv_format = emulation.kv_format;
  a.q_format = emulation.q_format;
  a.product_format = emulation.product_format;
  a.qk_sum_format = emulation.qk_sum_format;
  a.output_format = emulation.output_format;
  a.rounded_before_scale = emulation.rounded_before_scale;
  a.exponential = emulation.natural ? ASSAY_EXP_NATURAL : ASSAY_EXP_BASE2;
  a.sum_depth = (emulation.tile + kLanes - 1) / kLanes + 2;
  a.exp2_rel_error = emulation.exp2_error;
  a.log2_abs_error = emulation.log2_error;
  a.rcp_rel_error = emulation.rcp_error;
  a.tanh_abs_error = kTanhError;
  const Format *q = rounding_of(emulation.unit_q_format, ASSAY_FP16);
  a.q_abs_error = q ? 0.51 * q->unit_roundoff : 0x1p-39;
  a.tile_tokens = emulation.tile;
  a.max_parallel_states = emulation.states;
  a.max_splits = 1024;
  a.merge_stages = emulation.stages;
  return a;
}

RowOutput emulate_row(std::span<const float> q, const KeySet &given, assay_dtype dtype,
                      float sm_scale, assay_lse_base base, const TileOrder &order,
                      const Emulation &emulation, const RowFeatures &given_features) {
  RowFeatures features = given_features;
  const bool wide = dtype == ASSAY_FP32 && emulation.kv_format != ASSAY_FORMAT_CALL;
  const bool rounds_kv = (features.fp8 || wide) && emulation.kv_format != ASSAY_FORMAT_FP32;
  const assay_dtype operand = operand_dtype(dtype, features.fp8 || rounds_kv, emulation.kv_format);
  const Ops ops(emulation, operand);
  KeySet rounded;
  if (rounds_kv)
    rounded = scaled_and_rounded(given, features, ops,
                                 emulation.kv_format == ASSAY_FORMAT_TF32
                                     ? *rounding_of(ASSAY_FORMAT_TF32, dtype)
                                     : format_of(operand));
  const KeySet &keys = rounds_kv ? rounded : given;
  std::vector<float> query(q.begin(), q.end());
  const float log2e = emulation.natural ? 1.0f : 1.44269504f;
  float scale = sm_scale * log2e;
  if (const Format *q_format = rounding_of(emulation.unit_q_format, ASSAY_FP16))
    round_query(query, *q_format);
  const Format *q_format = rounding_of(emulation.q_format, operand);
  const Format *product_format = rounding_of(emulation.product_format, operand);
  const Format *qk_sum_format = rounding_of(emulation.qk_sum_format, operand);
  if (q_format != nullptr || product_format != nullptr || qk_sum_format != nullptr) {
    scale = round_scaled_query(query, {sm_scale, log2e, features.fp8 ? features.k_scale : 1.0f},
                               ops, emulation.seed, q_format);
  } else if (features.fp8) {
    if (emulation.mutant != Mutant::kScaleIgnored) scale *= features.k_scale;
    // An fp16 query needs no scaling; both ways are correct.
    const bool as_it_is = rounds_kv || (dtype == ASSAY_FP16 && emulation.seed % 2 != 0);
    if (!as_it_is) scale *= scale_query(query);
  }
  Row row{query,
          keys,
          emulation,
          ops,
          scale,
          features,
          features.mapped() ? 1.0f : scale,
          rounding_of(declared(emulation).p_format, operand),
          emulation.sum_format == ASSAY_FORMAT_CALL ? nullptr
                                                    : rounding_of(emulation.sum_format, dtype),
          rounding_of(emulation.partial_format, dtype),
          rounding_of(emulation.score_format, operand),
          q_format,
          product_format,
          qk_sum_format,
          rounding_of(emulation.output_format, dtype),
          log2e,
          0};
  if (emulation.mutant == Mutant::kScaleInBf16)
    row.scale = row.softmax_scale = round_bits(row.scale, 8);
  const auto tiles = static_cast<uint64_t>(order.size());
  row.marked_tile = tiles > 1 ? static_cast<int>(1 + emulation.seed % ((tiles + 1) / 2)) : 0;
  std::map<int, std::vector<State>> splits;
  State fresh;
  fresh.o.assign(static_cast<size_t>(keys.head_dim), 0.0f);
  fresh.low = fresh.o;
  for (const KeyTile &tile : order) {
    auto &states = splits[tile.split];
    states.resize(std::max(states.size(), static_cast<size_t>(tile.state) + 1), fresh);
    if (tile.begin < tile.end) add_tile(row, tile, states[static_cast<size_t>(tile.state)]);
  }
  std::vector<Partial> partials;
  for (const auto &[split, states] : splits) {
    partials.push_back(
        finish_split(row, states.size() > 1 ? merge_states(row, states) : states[0]));
    if (emulation.mutant == Mutant::kSinkPerSplit)
      partials.back() = merge_sink(row, partials.back());
  }
  if (partials.empty()) partials.push_back({fresh.o, kNegInf});
  if (emulation.stages == 2) {
    partials = stored(row, partials);
    const auto half = partials.begin() + static_cast<int64_t>(partials.size() / 2);
    partials = {combine(row, {partials.begin(), half}), combine(row, {half, partials.end()})};
  }
  Partial result =
      partials.size() > 1 || emulation.combine ? combine(row, stored(row, partials)) : partials[0];
  if (emulation.mutant != Mutant::kSinkPerSplit) result = merge_sink(row, result);
  RowOutput output{result.o, result.lse};
  for (float &x : output.o)
    x = finish_output(row, dtype, x);
  if (base == ASSAY_LSE_BASE_E && !emulation.natural) output.lse *= 0.693147181f;
  if (base == ASSAY_LSE_BASE_2 && emulation.natural) output.lse *= 1.44269504f;
  return output;
}

RowOutput emulate_merge(std::span<const float> o, std::span<const float> lse, int head_dim,
                        assay_dtype dtype, assay_lse_base base, const Emulation &emulation) {
  const Ops ops(emulation, dtype);
  const bool natural = base == ASSAY_LSE_BASE_E;
  RowOutput result{std::vector<float>(static_cast<size_t>(head_dim), 0.0f), kNegInf};
  size_t live = 0, only = 0;
  for (size_t s = 0; s < lse.size(); ++s) {
    if (lse[s] == kNegInf) continue;
    result.lse = std::max(result.lse, lse[s]);
    ++live;
    only = s;
  }
  if (live == 0) return result;
  const auto d = static_cast<size_t>(head_dim);
  if (live == 1) {
    result.o.assign(o.begin() + static_cast<int64_t>(only * d),
                    o.begin() + static_cast<int64_t>((only + 1) * d));
    return result;
  }
  float sum = 0.0f;
  for (size_t s = 0; s < lse.size(); ++s) {
    if (lse[s] == kNegInf) continue;
    float below = lse[s] - result.lse;
    const bool convert = natural != (emulation.mutant == Mutant::kMergeMixesBases);
    if (convert) below *= 1.44269504f;
    if (emulation.mutant == Mutant::kMergeIgnoresMaxima) below = 0.0f;
    const float w = ops.exp2(below);
    sum += w;
    for (size_t i = 0; i < d; ++i)
      result.o[i] += w * o[s * d + i];
  }
  if (emulation.mutant == Mutant::kMergeNormaliserOff) sum *= 1.0f + 0x1p-8f;
  const float inverse = ops.rcp(sum);
  for (float &x : result.o) {
    x *= inverse;
    if (dtype != ASSAY_FP32) x = ops.round(x);
  }
  result.lse += natural ? ops.log2(sum) * 0.693147181f : ops.log2(sum);
  return result;
}

} // namespace assay::oracle::test
