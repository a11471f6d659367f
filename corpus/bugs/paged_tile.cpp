// SPDX-License-Identifier: Apache-2.0
// One tile of keys: scores, mask, running maximum, weights, values.
#include <algorithm>
#include <cmath>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/paged_row.h"

namespace assay::bugs {
namespace {

constexpr float kSentinel = -5e4f, kFilter = -1e30f, kPlaceholder = -1e5f;
constexpr float kLargestFp16 = 65504.0f, kLargestE4m3 = 448.0f;

float capped(float x, float cap) {
  if (!is(Bug::softcap_ratio_of_exponentials)) return cap * std::tanh(x / cap);
  const float up = std::exp(x / cap), down = std::exp(-x / cap);
  return cap * ((up - down) / (up + down));
}

/// The base-2 logit of a key that was loaded.
float logit(const Row &row, int tile, int key) {
  const float raw = score(row, tile, key);
  const bool beyond = is(Bug::raw_scores_overflow_as_fp16) && std::fabs(raw) > kLargestFp16;
  float x = (beyond ? std::copysign(INFINITY, raw) : raw) * row.scale;
  if (is(Bug::scaled_scores_narrowed_to_fp16) && row.p->dtype == ASSAY_FP16 &&
      std::fabs(x) > kLargestFp16 * kLog2E)
    x = std::copysign(INFINITY, x);
  if (row.cap > 0) x = capped(x, row.cap);
  const int newest = row.position + (is(Bug::alibi_distance_off_by_one) ? 1 : 0);
  int distance = position_of_held(*row.p, key) - newest;
  if (is(Bug::alibi_distance_clamped)) distance = std::max(distance, -4096);
  return x + row.slope * static_cast<float>(distance);
}

/// Instead of the logit of a key that the row does not see.
float masked_logit(const Row &row, int key) {
  if (is(Bug::finite_mask_sentinel)) return kSentinel;
  if (is(Bug::masked_scores_finite)) return kFilter;
  if (is(Bug::softcap_after_mask) && row.cap > 0) return -row.cap;
  // Without causality the loop over the boundary was thought superfluous: what was not loaded is 0.
  if (is(Bug::boundary_mask_skipped) && row.p->q_len == 1 && key >= row.length) return 0;
  return kNegInf;
}

/// Whether the value of a key meets its weight: where the row sees it.
bool meets_value(const Row &row, int key) {
  if (row.sees(key)) return true;
  const int page_size = row.p->kv.page_size;
  const int paged_length = (row.length + page_size - 1) / page_size * page_size;
  if (is(Bug::tail_loaded_by_pages)) return key >= row.length && key < paged_length;
  if (is(Bug::expired_values_read)) return key < row.visible.begin && row.visible.size() > 0;
  return is(Bug::masked_scores_finite) && key < row.length;
}

void add_value(const Row &row, int tile, int key, float weight, State &state) {
  float v[kPiece];
  const int dims =
      is(Bug::dims_past_128_forgotten) ? std::min(128, row.p->head_dim) : row.p->head_dim;
  for (int dim = 0; dim < dims; dim += kPiece) {
    load_values(row, tile, key, dim, v);
    for (int i = 0; i < kPiece; ++i) {
      float &o = state.o[dim + i];
      o = std::fma(weight, v[i], o);
      if (is(Bug::accumulator_overflows_as_fp16) && std::fabs(o) > kLargestFp16)
        o = std::copysign(INFINITY, o);
    }
  }
}

void rescale(State &state, float m) {
  float alpha = state.m == kNegInf ? 0.0f : std::exp2(state.m - m);
  if (is(Bug::correction_is_one)) alpha = 1;
  if (is(Bug::correction_of_empty_split_is_nan)) alpha = std::exp2(state.m - m);
  state.m = m;
  state.l *= alpha;
  for (float &o : state.o)
    o *= alpha;
}

/// The maximum that the weights of a tile are taken against.
float maximum(const State &state, const float *x) {
  if (is(Bug::maximum_is_ten)) return 10 * kLog2E;
  float start = state.m;
  if (start == kNegInf && is(Bug::finite_mask_sentinel)) start = kSentinel;
  if (start == kNegInf && is(Bug::sink_over_placeholder_maximum)) start = kPlaceholder;
  float m = std::max(start, *std::max_element(x, x + kTile));
  if (m == kNegInf && is(Bug::maximum_of_masked_tile_is_zero)) m = 0;
  // Rescaled only when the maximum has grown by more than four: until then weights reach 2^4.
  const bool lazy = is(Bug::weight_saturates_behind_stale_maximum) && state.m != kNegInf;
  return lazy && m - state.m <= 4 ? state.m : m;
}

/// What meets V of a weight.
float narrowed(float p) {
  if (!is(Bug::weight_saturates_behind_stale_maximum)) return p;
  return std::min(p * 256, kLargestE4m3) / 256; // its range, not its precision
}

} // namespace

void add_tile(const Row &row, int tile, State &state) {
  float x[kTile];
  for (int lane = 0; lane < kTile; ++lane)
    x[lane] =
        row.sees(tile + lane) ? logit(row, tile, tile + lane) : masked_logit(row, tile + lane);
  rescale(state, maximum(state, x));
  for (int lane = 0; lane < kTile; ++lane) {
    const float p = x[lane] == kNegInf ? 0.0f : std::exp2(x[lane] - state.m);
    state.l += p;
    if (meets_value(row, tile + lane)) add_value(row, tile, tile + lane, narrowed(p), state);
  }
  for (float &o : state.o)
    if (is(Bug::divided_at_every_tile) && state.l > 0) o /= state.l;
}

void add_sink(const Row &row, State &state) {
  if (row.sink == kNegInf) return;
  const bool untouched = state.m == kNegInf || state.m == kPlaceholder;
  if (is(Bug::sink_over_placeholder_maximum) && untouched) {
    state.m = kPlaceholder;
    state.l += std::exp2(row.sink - state.m);
    return;
  }
  rescale(state, std::max(state.m, row.sink));
  state.l += std::exp2(row.sink - state.m);
}

} // namespace assay::bugs
