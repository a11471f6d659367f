// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <vector>

#include "kernels/simt/stream.h"
#include "properties/tests/dot.h"
#include "properties/tests/reference_elements.h"
#include "properties/tests/reference_kernels.h"

namespace assay::reference {
namespace {

constexpr int kMaxHeadDim = 256;

struct Key {
  const assay_paged_kv *kv;
  int64_t k, v; ///< element index of dim 0
  bool live;
  int position;
};

/// Tokens [begin, end) of a row; `end` may be negative.
struct Range {
  int begin, end;
};

/// The page list of a row and kv head.
const int32_t *list_of(const assay_paged_kv &kv, int row, int kv_head) {
  const int64_t begin =
      kv.page_indptr == nullptr ? row * kv.page_table_stride : kv.page_indptr[row];
  return kv.page_table + begin +
         (bug == Bug::kListOfHeadZero ? 0 : kv_head * kv.page_table_stride_head);
}

void append_keys(std::vector<Key> &keys, const assay_paged_kv &kv, int row, int kv_head,
                 Range range) {
  const int32_t *table = list_of(kv, row, kv_head);
  int n = range.end;
  if (n <= 0) return;
  int first = bug == Bug::kWindowLateMask ? 0 : range.begin;
  int padded = bug == Bug::kLateMask ? (n + kv.page_size - 1) / kv.page_size * kv.page_size : n;
  if (bug == Bug::kDropsLastKey && n > 1) padded = n - 1;
  if (bug == Bug::kFixedKvHead) kv_head = 0;
  std::set<int> seen;
  if (bug == Bug::kSkipsRepeatedPages && row > 0 && kv.seq_lens[0] > 0)
    seen.insert(list_of(kv, 0, kv_head)[0]);
  for (int t = first; t < padded; ++t) {
    int j = t / kv.page_size, slot = t % kv.page_size;
    if (bug == Bug::kAscendingPages && j > 0 && table[j] < table[j - 1]) continue;
    if (bug == Bug::kSkipsRepeatedPages && slot == 0 && !seen.insert(table[j]).second) break;
    if (bug == Bug::kDropsLastSlot && kv.page_size > 1 && slot == kv.page_size - 1) continue;
    keys.push_back(
        {&kv, table[j] * kv.k_stride_page + slot * kv.k_stride_token + kv_head * kv.k_stride_head,
         table[j] * kv.v_stride_page + slot * kv.v_stride_token + kv_head * kv.v_stride_head,
         t >= range.begin && t < n, t});
  }
}

struct State {
  float m = kNegInf, l = 0;
  std::vector<float> o;
};

struct Row {
  std::vector<float> q;
  assay_dtype dtype, kv_dtype;
  float c; ///< base-2 scale
  // Features; the defaults are those of plain attention.
  float v_scale = 1;
  float cap = 0;   ///< base 2
  float slope = 0; ///< base 2
  bool mapped = false;
  int position = 0;
  bool sinks = false;
  float sink = 0; ///< base 2

  /// From scores to base-2 logits: 1 where the map has done it.
  float softmax_scale() const { return mapped ? 1.0f : c; }
};

float score(const Row &row, const Key &key) {
  const int d = static_cast<int>(row.q.size());
  float k[kMaxHeadDim];
  load_row(key.kv->k, key.k, d, row.kv_dtype, k);
  const float s = dot(row.q.data(), k, d);
  if (!row.mapped) return s;
  float x = s * row.c;
  if (row.cap > 0 && bug != Bug::kNoSoftcap) x = row.cap * std::tanh(x / row.cap);
  int distance = key.position - row.position - (bug == Bug::kAlibiOffByOne ? 1 : 0);
  return x + row.slope * static_cast<float>(distance);
}

void add_value(const Row &row, const Key &key, float p, std::vector<float> &o) {
  const int d = static_cast<int>(o.size());
  float v[kMaxHeadDim];
  load_row(key.kv->v, key.v, d, row.kv_dtype, v);
  for (int i = 0; i < d && bug == Bug::kClampedV; ++i)
    v[i] = std::max(v[i], 0.0f);
  for (int i = 0; i < d && bug == Bug::kNanValuesDropped; ++i)
    if (std::isnan(v[i])) v[i] = 0;
  for (int i = 0; i < d; ++i)
    o[i] = std::fma(p, v[i], o[i]);
}

State attend(const Row &row, const Key *keys, size_t count) {
  State st;
  st.o.assign(row.q.size(), 0.0f);
  if (bug == Bug::kMaxFromZero) st.m = 0;
  const float c = row.softmax_scale();
  for (size_t t0 = 0; t0 < count; t0 += kTile) {
    size_t n = std::min<size_t>(kTile, count - t0);
    float s[kTile], m = st.m;
    for (size_t j = 0; j < n; ++j) {
      s[j] = keys[t0 + j].live ? score(row, keys[t0 + j]) : kNegInf;
      if (bug == Bug::kNanScoresDropped && std::isnan(s[j])) s[j] = kNegInf;
      m = std::max(m, s[j]);
    }
    if (bug == Bug::kNoMax) m = 0;
    float alpha = st.m == kNegInf ? 0.0f : std::exp2((st.m - m) * c);
    if (bug == Bug::kMissingRescale || alpha == 1.0f) alpha = 1.0f;
    if (m == kNegInf) alpha = 1.0f;
    st.m = m;
    st.l *= alpha;
    for (float &x : st.o)
      x *= alpha;
    for (size_t j = 0; j < n; ++j) {
      float p = s[j] == kNegInf ? 0.0f : std::exp2(std::fma(s[j], c, -(c * m)));
      if (!(bug == Bug::kRowSumDropsKey && t0 + j == 0)) st.l += p;
      if (p == 0.0f && bug != Bug::kLateMask && bug != Bug::kWindowLateMask) continue;
      add_value(row, keys[t0 + j], p, st.o);
    }
  }
  return st;
}

/// O normalised, LSE in base 2.
void finish(State &st, float c, float &lse) {
  if (st.l == 0 && st.m == kNegInf) {
    std::fill(st.o.begin(), st.o.end(), 0.0f);
    lse = kNegInf;
    return;
  }
  float r = 1.0f / st.l;
  for (float &x : st.o)
    x *= r;
  lse = bug == Bug::kLseWithoutSum ? c * st.m : c * st.m + std::log2(st.l);
}

/// One more state, of O = 0 and the sink's LSE.
void merge_sink(const Row &row, std::vector<float> &o, float &lse) {
  if (!row.sinks || row.sink == kNegInf || bug == Bug::kSinkIgnored) return;
  float top = std::max(lse, row.sink);
  float own = lse == kNegInf ? 0.0f : std::exp2(lse - top), sunk = std::exp2(row.sink - top);
  for (float &x : o)
    x *= own / (own + sunk);
  lse = top + std::log2(own + sunk);
}

/// Splits through fp32 partials in `scratch` (d + 1 floats each), then the combine.
void attend_split(const Row &row, const std::vector<Key> &keys, int splits, float *scratch,
                  std::vector<float> &o, float &lse) {
  size_t d = row.q.size(), per = (keys.size() + splits - 1) / splits;
  for (int s = 0; s < splits; ++s) {
    size_t begin = std::min(keys.size(), s * per), end = std::min(keys.size(), begin + per);
    State st = attend(row, keys.data() + begin, end - begin);
    float *out = scratch + s * (d + 1);
    finish(st, row.softmax_scale(), out[d]);
    if (bug == Bug::kSinkPerSplit) merge_sink(row, st.o, out[d]);
    if (bug == Bug::kReadsWorkspace) out[0] *= 0.0f; // keeps a NaN
    if (!(bug == Bug::kReadsWorkspace && begin == end)) std::copy(st.o.begin(), st.o.end(), out);
  }
  float top = kNegInf;
  for (int s = 0; s < splits; ++s)
    top = std::max(top, scratch[s * (d + 1) + d]);
  o.assign(d, 0.0f);
  float sum = 0;
  for (int s = 0; s < splits; ++s) {
    const float *part = scratch + s * (d + 1);
    float w = part[d] == kNegInf ? 0.0f : std::exp2(part[d] - top);
    if (bug == Bug::kUnweightedSplits && part[d] != kNegInf) w = 1.0f;
    if (bug == Bug::kEmptySplitCounts && part[d] == kNegInf) w = 1.0f;
    if (w == 0.0f && bug != Bug::kReadsWorkspace) continue;
    sum += w;
    for (size_t i = 0; i < d; ++i)
      o[i] = std::fma(w, part[i], o[i]);
  }
  if (sum == 0) {
    lse = kNegInf;
    std::fill(o.begin(), o.end(), 0.0f);
    return;
  }
  for (float &x : o)
    x *= 1.0f / sum;
  lse = top + std::log2(sum);
}

template <class P>
void store_row(const P &p, int64_t o_at, int64_t lse_at, const std::vector<float> &o, float lse,
               bool last_head) {
  static thread_local int calls = 0;
  float nudge = 0;
  if (bug == Bug::kCallCounter) nudge = static_cast<float>(calls++ % 2) * 0.25f;
  if (bug == Bug::kScheduleDependent &&
      static_cast<simt::Stream *>(p.stream)->schedule.order == simt::Order::kDescending)
    nudge = 0.25f;
  for (int i = 0; i < p.head_dim; ++i)
    store(p.out, o_at + i, p.dtype, o[i] + nudge);
  if (bug == Bug::kStrayWrite && p.out_stride_head > p.head_dim && !last_head)
    store(p.out, o_at + p.head_dim, p.dtype, 1.25f);
  if (p.lse) p.lse[lse_at] = p.lse_base == ASSAY_LSE_BASE_2 ? lse : lse * 0.69314718f;
}

template <class P>
Row make_row(const P &p, int b, int h, int64_t q_at) {
  Row row;
  row.dtype = row.kv_dtype = p.dtype;
  row.c = p.sm_scale * (bug == Bug::kShortLog2e ? 1.4427f : 1.44269504f);
  for (int i = 0; i < p.head_dim; ++i)
    row.q.push_back(load(p.q, q_at + i, p.dtype));
  if constexpr (std::is_same_v<P, assay_paged_params>)
    if (bug == Bug::kQueriesTooEarly && p.enable_pdl) row.q.assign(p.head_dim, 0.0f);
  bool neighbour = bug == Bug::kNanLeak;
  if constexpr (std::is_same_v<P, assay_paged_params>) neighbour &= p.qo_indptr == nullptr;
  if (neighbour)
    row.q[0] +=
        0.0f * load(p.q, ((b + 1) % p.batch) * p.q_stride_batch + h * p.q_stride_head, p.dtype);
  return row;
}

template <class P>
int kv_head_of(const P &p, int h) {
  if (bug == Bug::kHeadRemainder) return h % p.num_kv_heads;
  return h / (p.num_qo_heads / p.num_kv_heads);
}

int split_count(int32_t num_splits) { return num_splits > 0 ? num_splits : 2; }

constexpr float kLog2E = 1.44269504f;

void add_features(Row &row, const assay_paged_params &p, int h, int kv_head) {
  if (bug == Bug::kScaleOfHeadZero) kv_head = 0;
  row.kv_dtype = p.kv_dtype;
  if (p.k_scale) row.c *= p.k_scale[kv_head * p.k_scale_stride];
  if (p.v_scale) row.v_scale = p.v_scale[kv_head * p.v_scale_stride];
  row.mapped = p.logits_soft_cap > 0 || p.alibi_slopes;
  row.cap = p.logits_soft_cap * kLog2E;
  if (p.alibi_slopes) row.slope = p.alibi_slopes[h] * kLog2E;
  row.sinks = p.sinks != nullptr;
  if (row.sinks) row.sink = p.sinks[h] * kLog2E;
}

int tokens_of(const assay_paged_params &p, int b) {
  return p.qo_indptr == nullptr ? p.q_len : p.qo_indptr[b + 1] - p.qo_indptr[b];
}

int length_of(const assay_paged_params &p, int b) {
  return p.dcp_world_size == 0 || bug == Bug::kShardLocalLength ? p.kv.seq_lens[b]
                                                                : p.global_lens[b];
}

/// Where key `index` of the cache stands.
int position_of(const assay_paged_params &p, int index) {
  if (p.dcp_world_size == 0 || bug == Bug::kShardByIndex) return index;
  return (index / p.dcp_interleave * p.dcp_world_size + p.dcp_rank) * p.dcp_interleave +
         index % p.dcp_interleave;
}

/// The keys of a shard at the positions of `range`, by their indices.
Range keys_at(const assay_paged_params &p, int b, Range range) {
  if (p.dcp_world_size == 0) return range;
  Range keys{0, 0};
  while (keys.end < p.kv.seq_lens[b] && position_of(p, keys.end) < range.end)
    if (position_of(p, keys.end++) < range.begin) ++keys.begin;
  return keys;
}

Range seen(const assay_paged_params &p, int b, int position) {
  int end = bug == Bug::kNotCausal ? length_of(p, b) : position + 1;
  if (position < 0) return {0, 0};
  if (p.window_left < 0) return {0, end};
  return {std::max(0, position + (bug == Bug::kWindowOffByOne ? 0 : 1) - (p.window_left + 1)), end};
}

/// Where a tensor has a query token.
int64_t token_at(const assay_paged_params &p, int b, int token, int64_t batch, int64_t stride) {
  if (p.qo_indptr == nullptr) return b * batch + token * stride;
  return (p.qo_indptr[bug == Bug::kRaggedAtFirst ? 0 : b] + int64_t{token}) * stride;
}

/// O and LSE of one query token and head.
void attend_paged(const assay_paged_params &p, int b, int token, int h, int splits,
                  float *scratch) {
  int kv_head = kv_head_of(p, h);
  Row row = make_row(
      p, b, h, token_at(p, b, token, p.q_stride_batch, p.q_stride_token) + h * p.q_stride_head);
  add_features(row, p, h, kv_head);
  row.position = length_of(p, b) - (bug == Bug::kRaggedAsFull ? p.q_len : tokens_of(p, b)) + token;
  std::vector<Key> keys;
  append_keys(keys, p.kv, b, kv_head, keys_at(p, b, seen(p, b, row.position)));
  for (Key &key : keys)
    key.position = position_of(p, key.position);
  if (bug == Bug::kBatchOrder && p.batch > 1) std::reverse(keys.begin(), keys.end());
  std::vector<float> o;
  float lse = kNegInf;
  if (scratch) {
    attend_split(row, keys, splits, scratch, o, lse);
  } else {
    State st = attend(row, keys.data(), keys.size());
    finish(st, row.softmax_scale(), lse);
    o = st.o;
  }
  if (!(bug == Bug::kSinkPerSplit && scratch)) merge_sink(row, o, lse);
  for (float &x : o)
    x *= row.v_scale;
  store_row(p,
            token_at(p, b, token, p.out_stride_batch, p.out_stride_token) + h * p.out_stride_head,
            token_at(p, b, token, p.lse_stride_batch, p.lse_stride_token) + h * p.lse_stride_head,
            o, lse, h + 1 == p.num_qo_heads);
}

assay_status run_paged(const assay_paged_params &p, bool split) {
  if (p.head_dim > kMaxHeadDim) return ASSAY_UNSUPPORTED;
  int splits = split ? split_count(p.num_splits) : 1;
  int64_t row = 0;
  for (int b = 0; b < p.batch; ++b)
    for (int token = 0; token < tokens_of(p, b); ++token)
      for (int h = 0; h < p.num_qo_heads; ++h, ++row) {
        float *scratch =
            split ? static_cast<float *>(p.workspace) + row * splits * (p.head_dim + 1) : nullptr;
        attend_paged(p, b, token, h, splits, scratch);
      }
  return ASSAY_OK;
}

int most_tokens_of(const assay_paged_params &p) { return p.q_len; }
int most_tokens_of(const assay_cascade_params &) { return 1; }

template <class P>
assay_status scratch_bytes(const void *params, uint64_t *bytes) {
  const P &p = *static_cast<const P *>(params);
  *bytes = static_cast<uint64_t>(p.batch) * most_tokens_of(p) * p.num_qo_heads *
           split_count(p.num_splits) * (p.head_dim + 1) * 4;
  return ASSAY_OK;
}

} // namespace

assay_status run_v1(const void *p) {
  return run_paged(*static_cast<const assay_paged_params *>(p), false);
}
assay_status run_v2(const void *p) {
  return run_paged(*static_cast<const assay_paged_params *>(p), true);
}

assay_status run_cascade(const void *params) {
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  if (p.head_dim > kMaxHeadDim) return ASSAY_UNSUPPORTED;
  int splits = split_count(p.num_splits);
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.num_qo_heads; ++h) {
      Row row = make_row(p, b, h, b * p.q_stride_batch + h * p.q_stride_head);
      std::vector<Key> keys;
      for (int l = 0; l < p.num_levels; ++l) {
        const assay_cascade_level &level = p.levels[l];
        for (int s = 0; s < level.kv.rows; ++s) {
          if (b < level.segment_indptr[s] || b >= level.segment_indptr[s + 1]) continue;
          append_keys(keys, level.kv, s, kv_head_of(p, h), {0, level.kv.seq_lens[s]});
          if (bug == Bug::kPrefixTwice && l == 0 && p.num_levels > 1)
            append_keys(keys, level.kv, s, kv_head_of(p, h), {0, level.kv.seq_lens[s]});
        }
      }
      std::vector<float> o;
      float lse = kNegInf;
      auto *scratch = static_cast<float *>(p.workspace) +
                      (b * p.num_qo_heads + h) * static_cast<int64_t>(splits) * (p.head_dim + 1);
      attend_split(row, keys, splits, scratch, o, lse);
      store_row(p, b * p.out_stride_batch + h * p.out_stride_head,
                b * p.lse_stride_batch + h * p.lse_stride_head, o, lse, h + 1 == p.num_qo_heads);
    }
  return ASSAY_OK;
}

assay_status paged_workspace(const void *params, uint64_t *bytes) {
  return scratch_bytes<assay_paged_params>(params, bytes);
}
assay_status cascade_workspace(const void *params, uint64_t *bytes) {
  return scratch_bytes<assay_cascade_params>(params, bytes);
}

} // namespace assay::reference
