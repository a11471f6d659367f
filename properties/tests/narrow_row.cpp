// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/narrow_row.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "oracle/exact/dtype.h"
#include "properties/tests/dot.h"

namespace assay::narrow {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

float rounded(assay_format format, double x, assay_dtype operand = ASSAY_FP16) {
  const oracle::Format *to = oracle::rounding_of(format, operand);
  return static_cast<float>(to ? oracle::round_to(*to, x) : x);
}
template <class Real>
Real exponential(const Style &s, Real x) {
  return s.natural ? std::exp(x) : std::exp2(x);
}
template <class Real>
Real logarithm(const Style &s, Real x) {
  return s.natural ? std::log(x) : std::log2(x);
}

/// One query row and where its keys lie.
struct Row {
  const Style &style;
  const assay_paged_params &p;
  int request, kv_head, position;
  std::vector<float> q;
  float scale = 1, cap = 0, slope = 0;

  using Elements = std::array<float, kMaxHeadDim>;
  Elements elements(const void *pool, int64_t page, int64_t token, int64_t head, int key) const {
    const int id = p.kv.page_table[request * p.kv.page_table_stride + key / p.kv.page_size];
    const int64_t at = id * page + key % p.kv.page_size * token + kv_head * head;
    Elements out;
    oracle::load_elements(p.kv_dtype,
                          static_cast<const char *>(pool) + at * oracle::element_size(p.kv_dtype),
                          p.head_dim, out.data());
    return out;
  }
  Elements values(int key) const {
    return elements(p.kv.v, p.kv.v_stride_page, p.kv.v_stride_token, p.kv.v_stride_head, key);
  }
  template <class Real>
  Real score(int key) const {
    const Elements k =
        elements(p.kv.k, p.kv.k_stride_page, p.kv.k_stride_token, p.kv.k_stride_head, key);
    Real s = 0;
    if constexpr (sizeof(Real) == sizeof(float)) {
      s = rounded(style.score, dot(q.data(), k.data(), p.head_dim), p.dtype) * scale;
    } else {
      s = std::inner_product(q.begin(), q.end(), k.begin(), Real{0}) * scale;
    }
    if (cap > 0) s = cap * std::tanh(s / cap);
    return s + slope * static_cast<Real>(key - position);
  }
};

template <class Real>
struct State {
  Real m = kNegInf, d = 0;
  std::vector<Real> o;
};

template <class Real>
Real into_sum(const Style &s, const Row &row, Real x) {
  if (s.sum == ASSAY_FORMAT_FP32 || s.sum == ASSAY_FORMAT_CALL) return x;
  return rounded(s.sum, x, row.p.dtype);
}

template <class Real>
Real tree_sum(const Row &row, const Real *p, int count) {
  if (count == 1) return into_sum(row.style, row, p[0]);
  const int half = count / 2;
  return into_sum<Real>(row.style, row,
                        tree_sum(row, p, half) + tree_sum(row, p + half, count - half));
}

/// Some other rotation of a tile at every call.
int first_of(const Style &s, int count) {
  static std::atomic<unsigned> calls{0};
  return s.any_order ? static_cast<int>((calls++ * 2654435761u >> 16) % count) : 0;
}

template <class Real>
void add_tile(const Row &row, const int *keys, int count, State<Real> &st) {
  const Style &s = row.style;
  std::vector<Real> x(count);
  Real m = st.m;
  bool nan = false;
  for (int j = 0; j < count; ++j) {
    x[j] = row.score<Real>(keys[j]);
    nan = nan || std::isnan(x[j]);
    m = std::max(m, x[j]);
  }
  if (nan) m = std::numeric_limits<Real>::quiet_NaN();
  const Real alpha = st.m == kNegInf && !nan ? 0 : exponential<Real>(s, st.m - m);
  st.m = m;
  st.d = into_sum<Real>(s, row, st.d * alpha);
  for (Real &o : st.o)
    o *= alpha;
  const int first = first_of(s, count);
  for (int n = 0; n < count; ++n) {
    const int j = (first + n) % count;
    const Real p = x[j] = exponential<Real>(s, x[j] - m);
    const Real narrow = s.p == ASSAY_FORMAT_FP32 ? p : Real{rounded(s.p, p, row.p.dtype)};
    if (!s.tree) st.d = into_sum<Real>(s, row, st.d + (s.sum == ASSAY_FORMAT_CALL ? narrow : p));
    const Row::Elements v = row.values(keys[j]);
    for (int i = 0; i < row.p.head_dim; ++i)
      st.o[i] = std::fma(narrow, static_cast<Real>(v[i]), st.o[i]);
  }
  if (s.tree) st.d = into_sum<Real>(s, row, st.d + tree_sum(row, x.data(), count));
}

/// O, and the LSE in the kernel's base.
template <class Real>
struct Result {
  std::vector<Real> o;
  Real lse = kNegInf;
};

/// Sum of the parts by their weights, over the sum of the weights.
template <class Real>
Result<Real> merge(const Style &s, const std::vector<Result<Real>> &parts) {
  Result<Real> out{std::vector<Real>(parts[0].o.size())};
  Real sum = 0, top = kNegInf;
  for (const auto &part : parts)
    top = std::isnan(part.lse) ? part.lse : std::max(part.lse, top);
  if (top == kNegInf) return out;
  for (const auto &part : parts) {
    if (part.lse == kNegInf) continue;
    const Real w = exponential<Real>(s, part.lse - top);
    sum += w;
    for (size_t i = 0; i < out.o.size(); ++i)
      out.o[i] = std::fma(w, part.o[i], out.o[i]);
  }
  for (Real &o : out.o)
    o /= sum;
  out.lse = top + logarithm<Real>(s, sum);
  return out;
}

/// The states of a part as one, not normalised.
template <class Real>
State<Real> joined(const Style &s, const std::vector<State<Real>> &states) {
  if (states.size() == 1) return states[0];
  State<Real> out;
  out.o.assign(states[0].o.size(), 0);
  for (const auto &state : states)
    out.m = std::isnan(state.m) ? state.m : std::max(state.m, out.m);
  for (const auto &state : states) {
    if (state.m == kNegInf) continue;
    const Real w = exponential<Real>(s, state.m - out.m);
    out.d = std::fma(w, state.d, out.d);
    for (size_t i = 0; i < out.o.size(); ++i)
      out.o[i] = std::fma(w, state.o[i], out.o[i]);
  }
  return out;
}

template <class Real>
Result<Real> attend(const Row &row, const int *keys, int count) {
  const Style &s = row.style;
  std::vector<State<Real>> states(s.states);
  for (auto &state : states)
    state.o.assign(row.p.head_dim, 0);
  for (int first = 0, n = 0; first < count; first += s.tile, ++n)
    add_tile(row, keys + first, std::min(s.tile, count - first), states[n % s.states]);
  State<Real> st = joined(s, states);
  if (count == 0) return {st.o};
  for (Real &o : st.o)
    o /= st.d;
  if (s.partial != ASSAY_FORMAT_FP32)
    for (Real &o : st.o)
      o = rounded(s.partial, o, row.p.dtype);
  return {st.o, st.m + logarithm<Real>(s, st.d)};
}

int parts_of(const Style &s, const assay_paged_params &p) {
  const bool asked = s.parts == Parts::kAsked || s.parts == Parts::kAskedOrByBatch;
  if (asked && p.num_splits > 0 && s.splits > 0) return p.num_splits;
  switch (s.parts) {
  case Parts::kAskedOrByBatch:
  case Parts::kByBatch:
    return 1 + p.batch % s.splits;
  case Parts::kByCapacity:
    return static_cast<int>(
        std::clamp<int64_t>(int64_t{p.kv.max_pages} * p.kv.page_size / 64, 1, s.splits));
  default:
    return std::max(1, s.splits);
  }
}

/// Where a tensor has a query token.
int64_t token_at(const assay_paged_params &p, int b, int token, int64_t batch, int64_t stride) {
  return p.qo_indptr ? (p.qo_indptr[b] + int64_t{token}) * stride : b * batch + token * stride;
}

Row make_row(const Style &s, const assay_paged_params &p, int b, int token, int h) {
  const int group = p.num_qo_heads / p.num_kv_heads;
  Row row{s, p, b, h / group, p.kv.seq_lens[b] - tokens_of(p, b) + token, {}};
  const int64_t at =
      token_at(p, b, token, p.q_stride_batch, p.q_stride_token) + h * p.q_stride_head;
  float largest = 0;
  for (int i = 0; i < p.head_dim; ++i) {
    row.q.push_back(oracle::load_element(p.dtype, p.q, at + i));
    largest = std::max(largest, std::fabs(row.q.back()));
  }
  if (s.q != ASSAY_FORMAT_FP32 && largest > 0)
    for (float &x : row.q)
      x = rounded(s.q, x / largest) * largest;
  const float base = s.natural ? 1.0f : kLog2E;
  row.scale = p.sm_scale * base;
  if (p.k_scale) row.scale *= p.k_scale[row.kv_head * p.k_scale_stride];
  if (s.scaled_q)
    for (float &x : row.q)
      x = rounded(ASSAY_FORMAT_BF16, x * row.scale);
  if (s.scaled_q) row.scale = 1;
  row.cap = p.logits_soft_cap * base;
  if (p.alibi_slopes) row.slope = p.alibi_slopes[h] * base;
  return row;
}

template <class Real>
void store_row(const Row &row, int token, int h, Result<Real> out) {
  const assay_paged_params &p = row.p;
  const float base = row.style.natural ? 1.0f : kLog2E;
  if (p.sinks)
    out = merge<Real>(row.style, {out, {std::vector<Real>(p.head_dim), p.sinks[h] * base}});
  const float v_scale = p.v_scale ? p.v_scale[row.kv_head * p.v_scale_stride] : 1.0f;
  const int64_t at = token_at(p, row.request, token, p.out_stride_batch, p.out_stride_token) +
                     h * p.out_stride_head;
  for (int i = 0; i < p.head_dim; ++i)
    oracle::store_element(p.dtype, p.out, at + i, static_cast<float>(out.o[i] * v_scale));
  if (!p.lse) return;
  const bool natural = p.lse_base == ASSAY_LSE_BASE_E;
  const float convert = natural == row.style.natural ? 1.0f : natural ? kLn2 : kLog2E;
  p.lse[token_at(p, row.request, token, p.lse_stride_batch, p.lse_stride_token) +
        h * p.lse_stride_head] = static_cast<float>(out.lse * convert);
}

template <class Real>
void run_in(const Row &row, int token, int h) {
  const Style &s = row.style;
  const int end = row.position + 1,
            begin = row.p.window_left >= 0 ? row.position - row.p.window_left : 0;
  std::vector<int> keys(std::max(0, end - std::max(0, begin)));
  std::iota(keys.begin(), keys.end(), std::max(0, begin));
  if (s.backwards) std::reverse(keys.begin(), keys.end());
  const int parts = parts_of(s, row.p), count = static_cast<int>(keys.size());
  std::vector<Result<Real>> results;
  for (int part = 0; part < parts; ++part) {
    const int first = static_cast<int>(int64_t{count} * part / parts);
    const int last = static_cast<int>(int64_t{count} * (part + 1) / parts);
    results.push_back(attend<Real>(row, keys.data() + first, last - first));
  }
  const Result<Real> out = s.splits > 0 ? merge(s, results) : results[0];
  for (int times = s.twice ? 2 : 1; times > 0; --times)
    store_row(row, token, h, out);
}

} // namespace

int tokens_of(const assay_paged_params &p, int request) {
  return p.qo_indptr ? p.qo_indptr[request + 1] - p.qo_indptr[request] : p.q_len;
}

void run_row(const Style &style, const assay_paged_params &p, int request, int token, int head) {
  const Row row = make_row(style, p, request, token, head);
  if (style.fp64) return run_in<double>(row, token, head);
  run_in<float>(row, token, head);
}

} // namespace assay::narrow
