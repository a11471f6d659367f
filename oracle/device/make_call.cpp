// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/make_call.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "kernels/abi/assay_judge.h"
#include "oracle/bounds/block_fma_step.h"
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

/// The tiles of a row, state after state.
void append_tiles(const ErrorModel &model, const TileOrder &order, std::vector<RowTile> &out) {
  std::map<std::pair<int, int>, std::vector<RowTile>> states;
  for (const KeyTile &tile : order)
    if (tile.begin < tile.end) {
      std::vector<RowTile> &state = states[{tile.split, tile.state}];
      state.push_back({tile.begin, tile.end, static_cast<int32_t>(pv_blocks(model, tile)),
                       tile.p_parts == 2 ? 1 : 0, state.empty() ? 1 : 0});
    }
  for (const auto &[key, state] : states)
    out.insert(out.end(), state.begin(), state.end());
}

/// The bit model of block_fma.h takes the call, whatever its queries are.
bool has_kernel_scores(const Call &call, const assay_arithmetic &arithmetic) {
  return arithmetic.mma_block > 0 && arithmetic.mma_block <= block_fma::kMaxBlock &&
         arithmetic.mma_fraction_bits >= 0 &&
         arithmetic.mma_fraction_bits <= block_fma::kMaxFractionBits && plain_scores(arithmetic) &&
         !call.facts.features.mapped() && !call.facts.rounds_kv;
}

/// Scales of tokens, and the runs that say where each run's are.
void gather_scales(const AttentionRows &rows, CallArrays &arrays) {
  arrays.runs = rows.runs;
  const int kv_heads = kv_heads_of(rows);
  int64_t keys = 0;
  for (KeyRun &run : arrays.runs) {
    append_scales(rows, run, kv_heads, false, arrays.k_scales);
    append_scales(rows, run, kv_heads, true, arrays.v_scales);
    run.k_scale_at = run.v_scale_at = keys;
    keys += run.count;
  }
}

/// What the rows and the kernel's order are cut into.
void read_shapes(const AttentionRows &rows, const KernelModel &model, CallArrays &arrays) {
  AttentionReader reader(rows, model);
  if (arrays.replays) arrays.first_tile.push_back(0);
  for (int row = 0; row < rows.out.rows(); ++row) {
    const RowShape plain = reader.shape(row, false, arrays.model);
    arrays.shapes.push_back(plain);
    arrays.shapes.push_back(rows.sinks ? reader.shape(row, true, arrays.model) : plain);
    if (!arrays.replays) continue;
    append_tiles(arrays.model, *reader.order(row), arrays.tiles);
    arrays.first_tile.push_back(static_cast<int64_t>(arrays.tiles.size()));
  }
}

} // namespace

int kv_heads_of(const AttentionRows &rows) {
  int heads = 0;
  for (const HeadInput &head : rows.heads)
    heads = std::max(heads, head.kv_head + 1);
  return heads;
}

CallArrays arrays_of(const AttentionRows &rows, const KernelModel &model,
                     const JudgeOptions &options) {
  CallArrays arrays;
  const RowProblem problem = common_problem(rows, model);
  arrays.model = model_of(problem, rows.head_dim);
  arrays.facts = facts_of(problem);
  arrays.replays = model.order && !options.first_tier_alone && arrays.model.replays_p;
  read_shapes(rows, model, arrays);
  for (const KeyPool &pool : rows.pools)
    arrays.pools.push_back({static_cast<const unsigned char *>(pool.k),
                            static_cast<const unsigned char *>(pool.v), pool.k_stride_token,
                            pool.k_stride_head, pool.v_stride_token, pool.v_stride_head});
  if (rows.scale_blocks() > 0) gather_scales(rows, arrays);
  return arrays;
}

Call make_call(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
               const CallArrays &arrays, const Place &place) {
  Call call{};
  call.model = arrays.model;
  call.facts = arrays.facts;
  call.pools = placed(arrays.pools, place);
  const bool scaled = rows.scale_blocks() > 0;
  call.runs = placed(scaled ? arrays.runs : rows.runs, place);
  call.first_run = placed(rows.first_run, place);
  call.k_scales.data = placed(arrays.k_scales, place);
  call.v_scales.data = placed(arrays.v_scales, place);
  if (scaled) {
    call.k_scales.blocks = rows.pools[0].k_scales.blocks;
    call.v_scales.blocks = rows.pools[0].v_scales.blocks;
  }
  call.q_at = placed(rows.q_at, place);
  call.o_at = placed(rows.out.o_at, place);
  call.lse_at = placed(rows.out.lse_at, place);
  call.list = placed(rows.list, place);
  call.begin = placed(rows.begin, place);
  call.end = placed(rows.end, place);
  const int32_t *behind = placed(rows.behind, place);
  if (!rows.behind.empty()) call.behind = behind;
  const float *q_scale = placed(rows.q_scale, place);
  if (!rows.q_scale.empty()) call.q_scale = q_scale;
  call.shard = rows.shard;
  call.heads = placed(rows.heads, place);
  call.shapes = placed(arrays.shapes, place);
  call.replays = arrays.replays;
  call.tiles = placed(arrays.tiles, place);
  call.first_tile = placed(arrays.first_tile, place);
  if (arrays.replays) call.p_format = *call.model.p_format;
  call.q = static_cast<const unsigned char *>(rows.q);
  call.o = static_cast<const unsigned char *>(outputs.o);
  call.lse = outputs.lse;
  call.q_stride_head = rows.q_stride_head;
  call.out_stride_head = rows.out.out_stride_head;
  call.lse_stride_head = rows.out.lse_stride_head;
  call.q_dtype = rows.q_dtype;
  call.kv_dtype = rows.kv_dtype;
  call.o_dtype = rows.out.dtype;
  call.empty_lse = rows.out.empty_lse;
  call.head_dim = rows.head_dim;
  call.dims = rows.out.dims;
  call.num_heads = rows.out.heads;
  call.num_kv_heads = kv_heads_of(rows);
  call.sm_scale = rows.sm_scale;
  call.aligned = aligned(rows, 8 * element_size(rows.kv_dtype));
  call.subnormal = may_be_subnormal(call.model);
  call.replay_scores =
      arrays.replays && model.replay_scores && has_kernel_scores(call, model.arithmetic);
  call.mma_block = model.arithmetic.mma_block;
  call.mma_fraction_bits = model.arithmetic.mma_fraction_bits;
  call.pairs = int64_t{rows.out.rows()} * rows.out.heads;
  return call;
}

} // namespace assay::oracle::device

namespace assay::oracle {
namespace {

bool is16(assay_dtype dtype) { return dtype == ASSAY_FP16 || dtype == ASSAY_BF16; }

std::string types_refuse(const AttentionRows &rows) {
  const bool scaled = rows.scale_blocks() > 0, int8 = rows.kv_dtype == ASSAY_INT8;
  if (!is16(rows.q_dtype) && !is_fp8(rows.q_dtype)) return "q is neither fp16 nor bf16 nor fp8";
  const bool narrow = is_fp8(rows.kv_dtype) || (int8 && scaled);
  if (rows.kv_dtype != rows.q_dtype && (!narrow || is_fp8(rows.q_dtype)))
    return "K and V are of a type of their own";
  if (!is16(rows.out.dtype) && !is_fp8(rows.out.dtype) && rows.out.dtype != ASSAY_FP32)
    return "outputs are neither fp8 nor fp16 nor bf16 nor fp32";
  const auto bytes = static_cast<uintptr_t>(element_size(rows.kv_dtype));
  for (const KeyPool &pool : rows.pools)
    if (std::bit_cast<uintptr_t>(pool.k) % bytes != 0 ||
        std::bit_cast<uintptr_t>(pool.v) % bytes != 0)
      return "K or V in parts of elements";
  return "";
}

} // namespace

std::string tiers_refuse(const AttentionRows &rows, const KernelModel &model) {
  if (std::string reason = types_refuse(rows); !reason.empty()) return reason;
  if (rows.head_dim > device::kMaxDim || rows.out.dims > device::kMaxDim)
    return "head_dim above " + std::to_string(device::kMaxDim);
  if (rows.heads.empty()) return "no heads";
  if (model.replay_scores && model.order && rows.scale_blocks() > 0)
    return "scores of keys with scales of tokens are replayed";
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

} // namespace assay::oracle
