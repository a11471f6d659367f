// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/make_call.h"

#include <algorithm>
#include <bit>

#include "oracle/bounds/key_formulas.h"
#include "oracle/bounds/row_work.h"
#include "oracle/exact/dtype.h"

namespace assay::oracle::device {
namespace {

/// K and V may be read `piece` bytes at a time.
bool aligned(const AttentionRows &rows, int64_t piece) {
  const int64_t bytes = element_size(rows.kv_dtype);
  const auto whole = [&](int64_t elements) { return elements * bytes % piece == 0; };
  const auto base = [&](const void *at) {
    return std::bit_cast<uintptr_t>(at) % static_cast<uintptr_t>(piece) == 0;
  };
  for (const KeyPool &pool : rows.pools)
    if (!base(pool.k) || !base(pool.v) || !whole(pool.k_stride_token) ||
        !whole(pool.k_stride_head) || !whole(pool.v_stride_token) || !whole(pool.v_stride_head))
      return false;
  return std::all_of(rows.runs.begin(), rows.runs.end(),
                     [&](const KeyRun &run) { return whole(run.k_at) && whole(run.v_at); });
}

bool grouped(const AttentionRows &rows) {
  const int heads = rows.out.heads, kv_heads = rows.heads.back().kv_head + 1;
  if (heads % kv_heads != 0) return false;
  for (int head = 0; head < heads; ++head)
    if (rows.heads[static_cast<size_t>(head)].kv_head != head / (heads / kv_heads)) return false;
  return true;
}

bool is16(assay_dtype dtype) { return dtype == ASSAY_FP16 || dtype == ASSAY_BF16; }

} // namespace

std::string refused(const AttentionRows &rows, const KernelModel &model) {
  const assay_arithmetic &a = model.arithmetic;
  if (!is16(rows.q_dtype)) return "q is neither fp16 nor bf16";
  if (rows.kv_dtype != rows.q_dtype && !rows.fp8()) return "K and V are of a type of their own";
  if (!is16(rows.out.dtype) && rows.out.dtype != ASSAY_FP32) return "outputs are fp8";
  if (rows.scale_blocks() > 0) return "scales of tokens";
  if (!rows.q_scale.empty()) return "a scale of q";
  if (rows.fp8() && a.kv_format != ASSAY_FORMAT_FP32) return "kv_format is declared";
  if (rows.head_dim > kMaxDim || rows.out.dims > kMaxDim) return "head_dim above 256";
  if (rows.pools.size() > kMaxPools) return "more than 8 pools";
  if (rows.heads.empty() || !grouped(rows)) return "query heads that are not in equal groups";
  if (!rows.span.empty()) return "hidden keys";
  const RowProblem problem = common_problem(rows, model);
  for (const HeadInput &head : rows.heads) {
    RowFeatures features = problem.features;
    features.k_scale = head.k_scale;
    features.v_scale = head.v_scale;
    features.slope = head.slope;
    features.sink = head.sink;
    if (!unclaimed_features(features).empty()) return "a scale, slope or sink without a claim";
  }
  return "";
}

bool plain(const AttentionRows &rows, const KernelModel &model) {
  const bool types =
      rows.q_dtype == ASSAY_BF16 && (rows.kv_dtype == ASSAY_BF16 || rows.kv_dtype == ASSAY_E4M3);
  return types && aligned(rows, 16) && rows.head_dim == kPlainDim && rows.out.dims == kPlainDim &&
         !(rows.softcap > 0.0f) && !rows.alibi &&
         model.arithmetic.score_format == ASSAY_FORMAT_FP32;
}

CallShape shape_of_call(const AttentionRows &rows, const KernelModel &model,
                        AttentionReader &reader) {
  const RowProblem problem = common_problem(rows, model);
  CallShape call{model_of(problem, rows.head_dim), facts_of(problem), {}};
  for (int row = 0; row < rows.out.rows(); ++row) {
    const RowShape plain = reader.shape(row, false, call.model);
    call.shapes.push_back(plain);
    call.shapes.push_back(rows.sinks ? reader.shape(row, true, call.model) : plain);
  }
  return call;
}

Call make_call(const AttentionRows &rows, const CallOutputs &outputs, const CallShape &shape,
               const Place &place) {
  Call call{};
  for (size_t i = 0; i < rows.pools.size(); ++i) {
    const KeyPool &pool = rows.pools[i];
    call.pools[i] = {static_cast<const unsigned char *>(pool.k),
                     static_cast<const unsigned char *>(pool.v),
                     pool.k_stride_token,
                     pool.k_stride_head,
                     pool.v_stride_token,
                     pool.v_stride_head};
  }
  call.model = shape.model;
  call.facts = shape.facts;
  call.runs = placed(rows.runs, place);
  call.first_run = placed(rows.first_run, place);
  call.q_at = placed(rows.q_at, place);
  call.o_at = placed(rows.out.o_at, place);
  call.lse_at = placed(rows.out.lse_at, place);
  call.begin = placed(rows.begin, place);
  call.end = placed(rows.end, place);
  const int32_t *behind = placed(rows.behind, place);
  if (!rows.behind.empty()) call.behind = behind;
  call.shard = rows.shard;
  call.heads = placed(rows.heads, place);
  call.shapes = placed(shape.shapes, place);
  call.q = static_cast<const unsigned char *>(rows.q);
  call.o = static_cast<const unsigned char *>(outputs.o);
  call.lse = outputs.lse;
  call.q_stride_head = rows.q_stride_head;
  call.o_stride_head = rows.out.o_stride_head;
  call.lse_stride_head = rows.out.lse_stride_head;
  call.q_dtype = rows.q_dtype;
  call.kv_dtype = rows.kv_dtype;
  call.o_dtype = rows.out.dtype;
  call.empty_lse = rows.out.empty_lse;
  call.head_dim = rows.head_dim;
  call.dims = rows.out.dims;
  call.num_heads = rows.out.heads;
  call.num_kv_heads = rows.heads.back().kv_head + 1;
  call.sm_scale = rows.sm_scale;
  call.aligned = aligned(rows, 8 * element_size(rows.kv_dtype));
  call.subnormal = may_be_subnormal(call.model);
  return call;
}

} // namespace assay::oracle::device
