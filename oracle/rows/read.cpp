// SPDX-License-Identifier: Apache-2.0
#include "oracle/rows/read.h"

#include <algorithm>
#include <cmath>

#include "kernels/abi/assay_judge.h"
#include "oracle/exact/dtype.h"

namespace assay::oracle {
namespace {

const std::byte *element(assay_dtype dtype, const void *base, int64_t at) {
  return static_cast<const std::byte *>(base) + at * element_size(dtype);
}

/// Appends `rows` rows of `width` elements, `stride` elements apart, from element `at` on.
void append_elements(const Memory &memory, assay_dtype dtype, const void *base, int64_t at,
                     int width, int64_t stride, int rows, std::vector<float> &out) {
  thread_local std::vector<std::byte> scratch;
  const auto bytes = static_cast<size_t>(element_size(dtype));
  const Memory::Rows from =
      memory.rows(element(dtype, base, at), static_cast<size_t>(width) * bytes,
                  static_cast<size_t>(stride) * bytes, static_cast<size_t>(rows), scratch);
  size_t next = out.size();
  out.resize(next + static_cast<size_t>(width) * static_cast<size_t>(rows));
  for (int row = 0; row < rows; ++row, next += static_cast<size_t>(width))
    load_elements(dtype, from.data + static_cast<size_t>(row) * from.pitch, width,
                  out.data() + next);
}

// Beyond these a scale leaves room for underflow that no bound speaks of: nothing is claimed.
constexpr float kSmallestScale = 0x1p-60f, kLargestScale = 0x1p60f;

float claimed_scale(float scale) {
  const bool claimed = scale == 0.0f || (scale >= kSmallestScale && scale <= kLargestScale);
  return claimed ? scale : NAN;
}

/// Multiplies the last `tokens` rows by their scales, each product rounded once.
void scale_tokens(const Memory &memory, const TokenScales &scales, int64_t at, int kv_head,
                  int tokens, int width, std::vector<float> &values) {
  if (scales.data == nullptr) return;
  const int block = width / scales.blocks;
  size_t next = values.size() - static_cast<size_t>(tokens) * static_cast<size_t>(width);
  for (int token = 0; token < tokens; ++token)
    for (int b = 0; b < scales.blocks; ++b) {
      const float *place = scales.data + at + token * scales.stride_token +
                           kv_head * scales.stride_head + b * scales.stride_block;
      const float scale = claimed_scale(memory.array(place, 1)[0]);
      for (int i = 0; i < block; ++i)
        values[next++] *= scale;
    }
}

} // namespace

KeySet read_keys(const AttentionRows &rows, const Memory &memory, int list, int kv_head, int begin,
                 int end) {
  KeySet keys;
  keys.head_dim = rows.head_dim;
  keys.v_dim = rows.out.dims;
  const auto at = static_cast<size_t>(list);
  const auto first = rows.runs.begin() + rows.first_run[at];
  const auto last = rows.runs.begin() + rows.first_run[at + 1];
  // The run that holds `begin`, or one behind it.
  auto run = std::partition_point(first, last,
                                  [&](const KeyRun &r) { return r.position + r.count <= begin; });
  for (; run != last && run->position < end; ++run) {
    const KeyPool &pool = rows.pools[static_cast<size_t>(run->pool)];
    const int skip = std::max(0, begin - run->position);
    const int count = std::min(run->count, end - run->position) - skip;
    append_elements(memory, rows.kv_dtype, pool.k,
                    run->k_at + skip * pool.k_stride_token + kv_head * pool.k_stride_head,
                    keys.head_dim, pool.k_stride_token, count, keys.k);
    scale_tokens(memory, pool.k_scales, run->k_scale_at + skip * pool.k_scales.stride_token,
                 kv_head, count, keys.head_dim, keys.k);
    append_elements(memory, rows.kv_dtype, pool.v,
                    run->v_at + skip * pool.v_stride_token + kv_head * pool.v_stride_head,
                    keys.value_dim(), pool.v_stride_token, count, keys.v);
    scale_tokens(memory, pool.v_scales, run->v_scale_at + skip * pool.v_scales.stride_token,
                 kv_head, count, keys.value_dim(), keys.v);
  }
  return keys;
}

void append_scales(const AttentionRows &rows, const KeyRun &run, int kv_heads, bool values,
                   std::vector<float> &out) {
  const KeyPool &pool = rows.pools[static_cast<size_t>(run.pool)];
  const TokenScales &scales = values ? pool.v_scales : pool.k_scales;
  const float *first = scales.data + (values ? run.v_scale_at : run.k_scale_at);
  for (int token = 0; token < run.count; ++token)
    for (int head = 0; head < kv_heads; ++head)
      for (int block = 0; block < scales.blocks; ++block)
        out.push_back(claimed_scale(first[token * scales.stride_token + head * scales.stride_head +
                                          block * scales.stride_block]));
}

std::vector<float> read_query(const AttentionRows &rows, const Memory &memory, int row, int head) {
  std::vector<float> q;
  append_elements(memory, rows.q_dtype, rows.q,
                  rows.q_at[static_cast<size_t>(row)] + head * rows.q_stride_head, rows.head_dim, 0,
                  1, q);
  return q;
}

RowFeatures features_of(const AttentionRows &rows, int row, int head) {
  const HeadInput &input = rows.heads[static_cast<size_t>(head)];
  RowFeatures features;
  features.fp8 = rows.fp8();
  features.scale_blocks = rows.scale_blocks();
  features.k_scale = input.k_scale;
  features.v_scale = input.v_scale;
  features.q_scaled = !rows.q_scale.empty();
  if (features.q_scaled)
    features.q_scale =
        rows.q_scale[static_cast<size_t>(row) * rows.heads.size() + static_cast<size_t>(head)];
  features.o_scale = rows.o_scale;
  features.softcap = rows.softcap;
  features.alibi = rows.alibi;
  features.slope = input.slope;
  features.sinks = rows.sinks;
  features.sink = input.sink;
  if (!rows.behind.empty()) features.behind = rows.behind[static_cast<size_t>(row)];
  features.shard = rows.shard;
  features.first_key = rows.begin[static_cast<size_t>(row)];
  return features;
}

States read_states(const MergeRows &rows, const Memory &memory, int row, int head) {
  States out;
  const auto at = static_cast<size_t>(row);
  for (auto s = static_cast<size_t>(rows.first[at]); s < static_cast<size_t>(rows.first[at + 1]);
       ++s) {
    const StoredState &state = rows.states[s];
    const StateArray &array = rows.arrays[static_cast<size_t>(state.array)];
    append_elements(memory, rows.out.dtype, array.o, state.o_at + head * array.out_stride_head,
                    rows.out.dims, 0, 1, out.o);
    append_elements(memory, ASSAY_FP32, array.lse, state.lse_at + head * array.lse_stride_head, 1,
                    0, 1, out.lse);
  }
  return out;
}

Written read_outputs(const RowOutputs &out, const CallOutputs &outputs, const Memory &memory,
                     int row, int head) {
  const auto at = static_cast<size_t>(row);
  Written written;
  append_elements(memory, out.dtype, outputs.o, out.o_at[at] + head * out.out_stride_head, out.dims,
                  0, 1, written.o);
  if (outputs.lse == nullptr) return written;
  std::vector<float> lse;
  append_elements(memory, ASSAY_FP32, outputs.lse, out.lse_at[at] + head * out.lse_stride_head, 1,
                  0, 1, lse);
  written.lse = lse[0];
  // Within the oracle an empty row has -inf: what the call's own convention is becomes that.
  const bool positive = written.lse == INFINITY;
  if (out.empty_lse != ASSAY_EMPTY_MINUS_INF && positive) written.lse = -INFINITY;
  if (out.empty_lse == ASSAY_EMPTY_PLUS_INF && lse[0] == -INFINITY) written.lse = INFINITY;
  written.has_lse = true;
  return written;
}

} // namespace assay::oracle
