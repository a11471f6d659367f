// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/narrow_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "oracle/exact/dtype.h"
#include "properties/tests/dot.h"
#include "properties/tests/narrow_styles.h"

namespace assay::narrow {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;
thread_local const char *last_reason = "";
const char *last_error() { return last_reason; }

float rounded(assay_format format, double x) {
  const oracle::Format *to = oracle::rounding_of(format, ASSAY_FP16);
  return static_cast<float>(to ? oracle::round_to(*to, x) : x);
}
float exponential(const Style &s, float x) { return s.natural ? std::exp(x) : std::exp2(x); }
float logarithm(const Style &s, float x) { return s.natural ? std::log(x) : std::log2(x); }

struct State {
  float m = kNegInf, d = 0;
  std::vector<float> o;
};

/// One query row and the positions of its keys.
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
  float score(int key) const {
    const Elements k =
        elements(p.kv.k, p.kv.k_stride_page, p.kv.k_stride_token, p.kv.k_stride_head, key);
    float s = dot(q.data(), k.data(), p.head_dim) * scale;
    if (cap > 0) s = cap * std::tanh(s / cap);
    return s + slope * static_cast<float>(key - position);
  }
  Elements values(int key) const {
    return elements(p.kv.v, p.kv.v_stride_page, p.kv.v_stride_token, p.kv.v_stride_head, key);
  }
};

float tree_sum(const Style &s, const float *p, int count) {
  if (count == 1) return rounded(s.sum, p[0]);
  const int half = count / 2;
  return rounded(s.sum, double(tree_sum(s, p, half)) + tree_sum(s, p + half, count - half));
}

void add_tile(const Row &row, const int *keys, int count, State &st) {
  const Style &s = row.style;
  std::vector<float> x(count);
  float m = st.m;
  bool nan = false;
  for (int j = 0; j < count; ++j) {
    x[j] = row.score(keys[j]);
    nan = nan || std::isnan(x[j]);
    m = std::max(m, x[j]);
  }
  if (nan) m = std::numeric_limits<float>::quiet_NaN();
  const float alpha = st.m == kNegInf && !nan ? 0.0f : exponential(s, st.m - m);
  st.m = m;
  st.d = rounded(s.sum, double(st.d) * alpha);
  for (float &o : st.o)
    o *= alpha;
  for (int j = 0; j < count; ++j) {
    const float p = x[j] = exponential(s, x[j] - m), narrow = rounded(s.p, p);
    if (!s.tree) st.d = rounded(s.sum, double(st.d) + p);
    const Row::Elements v = row.values(keys[j]);
    for (int i = 0; i < row.p.head_dim; ++i)
      st.o[i] = std::fma(narrow, v[i], st.o[i]);
  }
  if (s.tree) st.d = rounded(s.sum, double(st.d) + tree_sum(s, x.data(), count));
}

/// Normalised O, and the LSE in the kernel's base.
struct Result {
  std::vector<float> o;
  float lse = kNegInf;
};

Result attend(const Row &row, const int *keys, int count) {
  State st;
  st.o.assign(row.p.head_dim, 0.0f);
  for (int first = 0; first < count; first += row.style.tile)
    add_tile(row, keys + first, std::min(row.style.tile, count - first), st);
  if (count == 0) return {st.o};
  for (float &o : st.o)
    o /= st.d;
  return {st.o, st.m + logarithm(row.style, st.d)};
}

Result merge(const Style &s, const std::vector<Result> &parts) {
  Result out{std::vector<float>(parts[0].o.size(), 0.0f)};
  float sum = 0, top = kNegInf;
  for (const Result &part : parts)
    top = std::isnan(part.lse) ? part.lse : std::max(part.lse, top);
  if (top == kNegInf) return out;
  for (const Result &part : parts) {
    if (part.lse == kNegInf) continue;
    const float w = exponential(s, part.lse - top);
    sum += w;
    for (size_t i = 0; i < out.o.size(); ++i)
      out.o[i] = std::fma(w, part.o[i], out.o[i]);
  }
  for (float &o : out.o)
    o /= sum;
  out.lse = top + logarithm(s, sum);
  return out;
}

int parts_of(const Style &s, const assay_paged_params &p) {
  if (s.splits == 0) return 1;
  if (p.num_splits > 0 && !s.own_splits) return p.num_splits;
  return s.by_batch ? 1 + p.batch % s.splits : s.splits;
}

Row make_row(const Style &s, const assay_paged_params &p, int b, int token, int h) {
  const int group = p.num_qo_heads / p.num_kv_heads;
  Row row{s, p, b, h / group, p.kv.seq_lens[b] - p.q_len + token, {}};
  float largest = 0;
  for (int i = 0; i < p.head_dim; ++i) {
    row.q.push_back(oracle::load_element(
        p.dtype, p.q, b * p.q_stride_batch + token * p.q_stride_token + h * p.q_stride_head + i));
    largest = std::max(largest, std::fabs(row.q.back()));
  }
  if (s.q != ASSAY_FORMAT_FP32 && largest > 0)
    for (float &x : row.q)
      x = rounded(s.q, x / largest) * largest;
  const float base = s.natural ? 1.0f : kLog2E;
  row.scale = p.sm_scale * base;
  if (p.k_scale) row.scale *= p.k_scale[row.kv_head * p.k_scale_stride];
  row.cap = p.logits_softcap * base;
  if (p.alibi_slopes) row.slope = p.alibi_slopes[h] * base;
  return row;
}

void store_row(const Row &row, int token, int h, Result out) {
  const assay_paged_params &p = row.p;
  const float base = row.style.natural ? 1.0f : kLog2E;
  if (p.sinks)
    out = merge(row.style, {out, {std::vector<float>(p.head_dim, 0.0f), p.sinks[h] * base}});
  const float v_scale = p.v_scale ? p.v_scale[row.kv_head * p.v_scale_stride] : 1.0f;
  const int64_t at =
      row.request * p.o_stride_batch + token * p.o_stride_token + h * p.o_stride_head;
  for (int i = 0; i < p.head_dim; ++i)
    oracle::store_element(p.dtype, p.o, at + i, out.o[i] * v_scale);
  if (!p.lse) return;
  const bool natural = p.lse_base == ASSAY_LSE_NATURAL;
  const float convert = natural == row.style.natural ? 1.0f : natural ? kLn2 : kLog2E;
  p.lse[row.request * p.lse_stride_batch + token * p.lse_stride_token + h * p.lse_stride_head] =
      out.lse * convert;
}

void run_row(const Style &s, const assay_paged_params &p, int b, int token, int h) {
  const Row row = make_row(s, p, b, token, h);
  const int end = row.position + 1, begin = p.window > 0 ? std::max(0, end - p.window) : 0;
  std::vector<int> keys;
  for (int key = begin; key < end; ++key)
    keys.push_back(key);
  if (s.backwards) std::reverse(keys.begin(), keys.end());
  const int parts = parts_of(s, p), count = static_cast<int>(keys.size());
  std::vector<Result> results;
  for (int part = 0; part < parts; ++part) {
    const int first = static_cast<int>(int64_t{count} * part / parts);
    const int last = static_cast<int>(int64_t{count} * (part + 1) / parts);
    results.push_back(attend(row, keys.data() + first, last - first));
  }
  store_row(row, token, h, s.splits > 0 ? merge(s, results) : results[0]);
}

const char *refusal(const Style &s, const assay_paged_params &p) {
  const assay_dtype kv = s.kv == kAny && p.kv_dtype != p.dtype ? ASSAY_E4M3 : s.kv;
  const bool features = p.logits_softcap > 0 || p.alibi_slopes || p.sinks || p.q_len > 1;
  if (p.dtype != ASSAY_BF16 && p.dtype != ASSAY_FP16) return "no such dtype";
  if (s.dtype != kAny && p.dtype != s.dtype) return "built for one dtype";
  if (kv != kAny && p.kv_dtype != kv) return "built for one KV dtype";
  if (s.head_dim > 0 && p.head_dim != s.head_dim) return "built for one head_dim";
  if (p.head_dim > kMaxHeadDim) return "no larger head_dim than 256";
  if (s.page_size > 0 && p.kv.page_size != s.page_size) return "built for one page size";
  if (s.group > 0 && p.num_qo_heads != s.group * p.num_kv_heads) return "built for one group size";
  if (s.features != Features::kAll && features) return "plain attention only";
  if (s.features == Features::kPlain && p.window > 0) return "no window";
  if (!s.without_lse && !p.lse) return "writes the LSE";
  if (s.splits > 0 && !s.own_splits && p.num_splits > s.splits) return "fewer splits";
  const bool lengths = !s.without_keys && p.kv.seq_lens != nullptr;
  if (lengths && std::any_of(p.kv.seq_lens, p.kv.seq_lens + p.batch, [](int n) { return n < 1; }))
    return "a request without keys";
  if (int64_t{p.kv.max_pages} * p.kv.page_size > kMaxKeys) return "no more than 4,096 keys";
  return nullptr;
}

template <size_t kIndex>
assay_status supports(const void *params) {
  const char *reason = refusal(kStyles[kIndex], *static_cast<const assay_paged_params *>(params));
  last_reason = reason ? reason : "";
  return reason ? ASSAY_UNSUPPORTED : ASSAY_OK;
}

template <size_t kIndex>
assay_status run(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  for (int b = 0; b < p.batch; ++b)
    for (int token = 0; token < p.q_len; ++token)
      for (int h = 0; h < p.num_qo_heads; ++h)
        run_row(kStyles[kIndex], p, b, token, h);
  return ASSAY_OK;
}

assay_arithmetic declare(const Style &s) {
  assay_arithmetic a{};
  a.p_format = s.p;
  a.sum_format = s.sum;
  a.exponential = s.natural ? ASSAY_EXP_NATURAL : ASSAY_EXP_BASE2;
  a.sum_depth = s.tree ? static_cast<int>(std::ceil(std::log2(s.tile))) : s.tile;
  const oracle::Format *q = oracle::rounding_of(s.q, ASSAY_FP16);
  a.q_abs_error = q ? 0.51 * q->unit_roundoff : 0.0;
  a.exp2_rel_error = a.rcp_rel_error = 0x1p-23;
  a.log2_abs_error = a.tanh_abs_error = 0x1p-22;
  a.tile_tokens = s.tile;
  a.max_parallel_states = 1;
  a.max_splits = s.splits;
  a.merge_stages = s.splits > 0;
  return a;
}

template <size_t kIndex>
assay_kernel entry() {
  const Style &s = kStyles[kIndex];
  assay_kernel k{};
  k.struct_size = sizeof k;
  k.name = s.name;
  k.family = ASSAY_FAMILY_PAGED;
  k.target = ASSAY_TARGET_SIMT;
  k.determinism = ASSAY_DETERMINISM_RUN_TO_RUN;
  k.batch_invariance = s.by_batch ? ASSAY_BATCH_FIXED : ASSAY_BATCH_ALWAYS;
  k.nan_contract = ASSAY_NAN_VALUES | ASSAY_NAN_SCORES;
  k.arithmetic = declare(s);
  k.supports = &supports<kIndex>;
  k.run = &run<kIndex>;
  k.last_error = &last_error;
  return k;
}

template <size_t... kIndices>
std::array<assay_kernel, kCount> table(std::index_sequence<kIndices...>) {
  return {entry<kIndices>()...};
}

} // namespace

const assay_plugin &plugin() {
  static const auto kKernels = table(std::make_index_sequence<kCount>());
  static const assay_plugin kPlugin = {
      sizeof(assay_plugin),         ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, "narrow",
      static_cast<int32_t>(kCount), kKernels.data()};
  return kPlugin;
}

} // namespace assay::narrow
