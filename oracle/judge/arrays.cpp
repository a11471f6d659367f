// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/arrays.h"

#include <algorithm>
#include <cmath>

#include "oracle/exact/dtype.h"
#include "oracle/judge/array_view.h"
#include "oracle/judge/masked_rows.h"
#include "oracle/judge/page_scales.h"
#include "oracle/judge/page_tables.h"

namespace assay::oracle {
namespace {

constexpr int64_t kMaxKeys = int64_t{1} << 30; // keys of a request: positions are int32
constexpr int64_t kMaxRows = int64_t{1} << 30;
constexpr int64_t kMaxDim = 1 << 16;

void fail(const std::string &what) { throw ArrayError(ASSAY_INVALID_ARGUMENT, what); }

void require_unit(const ArrayView &array, int axis) {
  if (array.size(axis) > 1 && array.stride(axis) != 1)
    array.unsupported("'s last axis has stride " + std::to_string(array.stride(axis)) +
                      ", judged are arrays whose elements lie side by side");
}

/// What both kinds of params call alike.
template <class Params>
RowOutputs outputs_of(const Params &p, const ArrayView &out, const ArrayView &lse) {
  out.require({{"rows"}, {"heads"}, {"dim"}},
              {ASSAY_FP16, ASSAY_BF16, ASSAY_FP32, ASSAY_E4M3, ASSAY_E5M2});
  require_unit(out, 2);
  if (out.size(0) > kMaxRows) out.fail(" has more than 2^30 rows");
  if (out.size(2) < 1 || out.size(2) > kMaxDim) out.fail("'s dim is outside 1 .. 65536");
  if (lse.given()) lse.require({{"rows", out.size(0)}, {"heads", out.size(1)}}, {ASSAY_FP32});
  if (p.lse_base != ASSAY_LSE_BASE_E && p.lse_base != ASSAY_LSE_BASE_2)
    fail("lse_base is " + std::to_string(p.lse_base) + ", expected 0 (natural) or 1 (base 2)");
  if (p.empty_lse < ASSAY_EMPTY_MINUS_INF || p.empty_lse > ASSAY_EMPTY_EITHER)
    fail("empty_lse is " + std::to_string(p.empty_lse) + ", expected 0, 1 or 2");
  if (p.max_rows < 0) fail("max_rows is " + std::to_string(p.max_rows) + ", expected 0 or more");
  RowOutputs rows;
  rows.dtype = out.dtype();
  rows.lse_base = p.lse_base;
  rows.empty_lse = p.empty_lse;
  rows.dims = static_cast<int>(out.size(2));
  rows.heads = static_cast<int>(out.size(1));
  rows.out_stride_head = out.stride(1);
  rows.lse_stride_head = lse.given() ? lse.stride(1) : 0;
  for (int64_t row = 0; row < out.size(0); ++row) {
    rows.o_at.push_back(row * out.stride(0));
    rows.lse_at.push_back(lse.given() ? row * lse.stride(0) : 0);
  }
  return rows;
}

void fill(AttentionRows &rows, const ArrayView &array, float HeadInput::*field, bool by_kv_head) {
  if (!array.given()) return;
  const auto heads = static_cast<int64_t>(rows.heads.size());
  const int64_t kv_heads = rows.heads.empty() ? 0 : rows.heads.back().kv_head + 1;
  const int64_t many = by_kv_head ? kv_heads : heads;
  const bool one = by_kv_head && array.size(0) == 1;
  array.require({{by_kv_head ? "1 or kv_heads" : "heads", one ? 1 : many}}, {ASSAY_FP32});
  const std::vector<float> values = array.floats();
  for (HeadInput &head : rows.heads) {
    const size_t at = one ? 0 : by_kv_head ? head.kv_head : &head - rows.heads.data();
    head.*field = values[at];
    if (!std::isfinite(values[at]) && field != &HeadInput::sink)
      array.fail("[" + std::to_string(at) + "] is not finite");
  }
}

void fill_heads(AttentionRows &rows, const assay_judge_attention_params &p, int64_t kv_heads) {
  const int64_t heads = rows.out.heads;
  if (kv_heads < 1 || heads % kv_heads != 0)
    fail("q has " + std::to_string(heads) + " heads, expected a multiple of k's " +
         std::to_string(kv_heads));
  rows.heads.resize(static_cast<size_t>(heads));
  for (int64_t head = 0; head < heads; ++head)
    rows.heads[static_cast<size_t>(head)].kv_head = static_cast<int>(head / (heads / kv_heads));
  if (rows.scale_blocks() == 0) {
    const ArrayView k_scale("k_scale", p.k_scale), v_scale("v_scale", p.v_scale);
    for (const ArrayView *scale : {&k_scale, &v_scale})
      if (scale->given() && !rows.fp8()) scale->fail(" is given and k is not fp8 or int8");
    fill(rows, k_scale, &HeadInput::k_scale, true);
    fill(rows, v_scale, &HeadInput::v_scale, true);
  }
  const ArrayView slopes("alibi_slopes", p.alibi_slopes), sinks("sinks", p.sinks);
  rows.alibi = slopes.given();
  rows.sinks = sinks.given();
  fill(rows, slopes, &HeadInput::slope, false);
  fill(rows, sinks, &HeadInput::sink, false);
}

float output_scale(const ArrayView &scale, const AttentionRows &rows) {
  if (!scale.given()) return 1.0f;
  if (!is_fp8(rows.out.dtype)) scale.fail(" is given and out is not fp8");
  scale.require({{"1", 1}}, {ASSAY_FP32});
  const float value = scale.number(0, 0);
  if (!(value >= 0x1p-60f && value <= 0x1p60f)) scale.fail(" is outside 2^-60 .. 2^60");
  return value;
}

/// One for every row and head, however few were given.
void fill_query_scales(AttentionRows &rows, const ArrayView &scale, int64_t count) {
  if (!scale.given()) return;
  if (!rows.q_fp8()) scale.fail(" is given and q is not fp8");
  const int64_t heads = rows.out.heads;
  if (scale.dims() == 2)
    scale.require({{"rows", count}, {"heads", heads}}, {ASSAY_FP32});
  else
    scale.require({{"1 or heads", scale.size(0) == 1 ? 1 : heads}}, {ASSAY_FP32});
  for (int64_t row = 0; row < count; ++row)
    for (int64_t head = 0; head < heads; ++head) {
      const float value = scale.dims() == 2 ? scale.number(row, head)
                                            : scale.number(0, scale.size(0) == 1 ? 0 : head);
      if (!(std::isfinite(value) && value > 0))
        scale.fail(" of row " + std::to_string(row) + " head " + std::to_string(head) +
                   " is not a finite number above 0");
      rows.q_scale.push_back(value);
    }
}

void require_scalars(const assay_judge_attention_params &p) {
  if (!(std::isfinite(p.sm_scale) && p.sm_scale > 0))
    fail("sm_scale is not a finite number above 0");
  if (!(std::isfinite(p.logits_soft_cap) && p.logits_soft_cap >= 0))
    fail("logits_soft_cap is not a finite number, 0 or more");
  if (p.window_left < -1)
    fail("window_left is " + std::to_string(p.window_left) + ", expected -1 or more");
  if (p.window_right < -1)
    fail("window_right is " + std::to_string(p.window_right) + ", expected -1 or more");
}

} // namespace

CallRows rows_of(const assay_judge_attention_params &p) {
  require_scalars(p);
  const ArrayView out("out", p.out), lse("lse", p.lse), q("q", p.q), k("k", p.k), v("v", p.v);
  AttentionRows rows;
  rows.out = outputs_of(p, out, lse);
  q.require({{"rows", out.size(0)}, {"heads", out.size(1)}, {"head_dim"}},
            {ASSAY_FP16, ASSAY_BF16, ASSAY_E4M3, ASSAY_E5M2});
  const bool fp8_q = is_fp8(q.dtype());
  k.require({{"pages"}, {"slots"}, {"kv_heads"}, {"head_dim", q.size(2)}},
            {q.dtype(), fp8_q ? q.dtype() : ASSAY_E4M3, fp8_q ? q.dtype() : ASSAY_E5M2,
             fp8_q ? q.dtype() : ASSAY_INT8});
  v.require(
      {{"pages", k.size(0)}, {"slots", k.size(1)}, {"kv_heads", k.size(2)}, {"v_dim", out.size(2)}},
      {k.dtype()});
  for (const auto &[array, axis] : {std::pair(&q, 2), {&k, 3}, {&v, 3}})
    require_unit(*array, axis);
  if (q.size(2) < 1 || q.size(2) > kMaxDim) q.fail("'s head_dim is outside 1 .. 65536");
  if (k.size(1) < 1) k.fail("'s pages have no slots");
  rows.q_dtype = q.dtype();
  rows.kv_dtype = k.dtype();
  rows.head_dim = static_cast<int>(q.size(2));
  rows.sm_scale = p.sm_scale;
  rows.softcap = p.logits_soft_cap;
  rows.q = q.data();
  rows.q_stride_head = q.stride(1);
  rows.pools = {{k.data(), v.data(), k.stride(1), k.stride(2), v.stride(1), v.stride(2)}};
  const PageScales k_scales("k_scale", p.k_scale, k), v_scales("v_scale", p.v_scale, v);
  rows.pools[0].k_scales = k_scales.of_tokens();
  rows.pools[0].v_scales = v_scales.of_tokens();
  require_token_scales(rows, p.arithmetic);
  fill_heads(rows, p, k.size(2));
  rows.o_scale = output_scale(ArrayView("o_scale", p.o_scale), rows);
  fill_query_scales(rows, ArrayView("q_scale", p.q_scale), q.size(0));

  const ArrayView lens("seq_lens", p.seq_lens), indptr("qo_indptr", p.qo_indptr);
  lens.require({{"requests"}}, {ASSAY_INT32, ASSAY_INT64});
  const int64_t requests = lens.size(0);
  if (indptr.given()) {
    indptr.require({{"requests + 1", requests + 1}}, {ASSAY_INT32, ASSAY_INT64});
    if (indptr.integer(0) != 0 || indptr.integer(requests) != q.size(0))
      indptr.fail(" goes from " + std::to_string(indptr.integer(0)) + " to " +
                  std::to_string(indptr.integer(requests)) + ", expected 0 to the " +
                  std::to_string(q.size(0)) + " rows of q");
    for (int64_t request = 0; request < requests; ++request)
      if (indptr.integer(request + 1) < indptr.integer(request))
        indptr.fail("[" + std::to_string(request + 1) + "] is smaller than the one before it");
  } else if (requests == 0 ? q.size(0) > 0 : q.size(0) % requests != 0) {
    q.fail(" has " + std::to_string(q.size(0)) + " rows, expected a multiple of the " +
           std::to_string(requests) + " requests of seq_lens (or qo_indptr)");
  }
  const PageTables tables(p, requests, k.size(0), k.size(1));
  MaskedRows masked(p, requests,
                    {k.stride(1), v.stride(1), k_scales.of_tokens().stride_token,
                     v_scales.of_tokens().stride_token});
  if (masked.given() && rows.alibi)
    fail("mask is given with alibi_slopes: what a hidden key does to distances is not judged");
  const int64_t right =
      p.causal ? std::min<int64_t>(p.window_right < 0 ? 0 : p.window_right, 0) : p.window_right;
  rows.first_run.push_back(0);
  std::vector<KeyRun> runs;
  int64_t row = 0;
  for (int64_t request = 0; request < requests; ++request) {
    const int64_t keys = lens.integer(request);
    if (keys < 0 || keys > kMaxKeys)
      lens.fail("[" + std::to_string(request) + "] is " + std::to_string(keys) +
                ", expected 0 .. 2^30");
    runs.clear();
    tables.append(request, keys, {k.stride(0), k_scales.stride_page()},
                  {v.stride(0), v_scales.stride_page()}, runs);
    const int64_t count = indptr.given() ? indptr.integer(request + 1) - indptr.integer(request)
                                         : q.size(0) / requests;
    masked.turn_to(request, count, keys);
    if (!masked.given()) append_list(rows, runs);
    for (int64_t i = 0; i < count; ++i, ++row) {
      const int64_t position = keys - count + i;
      const int64_t end = right < 0 ? keys : std::clamp<int64_t>(position + right + 1, 0, keys);
      const int64_t begin =
          p.window_left < 0 ? 0 : std::clamp<int64_t>(position - p.window_left, 0, end);
      rows.q_at.push_back(row * q.stride(0));
      if (masked.given()) {
        masked.append(rows, runs, i, begin, end);
        continue;
      }
      rows.list.push_back(static_cast<int32_t>(request));
      rows.begin.push_back(static_cast<int32_t>(begin));
      rows.end.push_back(static_cast<int32_t>(end));
      rows.behind.push_back(static_cast<int32_t>(end - 1 - position));
    }
  }
  return rows;
}

CallRows rows_of(const assay_judge_merge_params &p) {
  const ArrayView out("out", p.out), lse("lse", p.lse), o("o_in", p.o_in),
      lse_in("lse_in", p.lse_in);
  MergeRows rows;
  rows.out = outputs_of(p, out, lse);
  if (is_fp8(out.dtype())) out.unsupported(" of a merge is fp8, judged are fp16, bf16 and fp32");
  o.require({{"states"}, {"rows", out.size(0)}, {"heads", out.size(1)}, {"dim", out.size(2)}},
            {out.dtype()});
  require_unit(o, 3);
  lse_in.require({{"states", o.size(0)}, {"rows", out.size(0)}, {"heads", out.size(1)}},
                 {ASSAY_FP32});
  rows.arrays = {
      {o.data(), static_cast<const float *>(lse_in.data()), o.stride(2), lse_in.stride(2)}};
  rows.first.push_back(0);
  for (int64_t row = 0; row < out.size(0); ++row) {
    for (int64_t state = 0; state < o.size(0); ++state)
      rows.states.push_back({0, state * o.stride(0) + row * o.stride(1),
                             state * lse_in.stride(0) + row * lse_in.stride(1)});
    rows.first.push_back(static_cast<int64_t>(rows.states.size()));
  }
  return rows;
}

} // namespace assay::oracle
