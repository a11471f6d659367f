// SPDX-License-Identifier: Apache-2.0
// A call as flat rows: for every query row where its query, outputs and keys lie. What stands
// behind these arrays (a family of the ABI, a layout, a language) is known to those who build them
// and to nobody else. Nothing is decoded here, and no row holds a pointer: places are elements from
// the arrays' bases, so the same rows serve a copy of the arrays in another memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/abi/assay.h"
#include "oracle/exact/shard.h"

namespace assay::oracle {

/** Where the outputs of rows lie. A row has `heads` outputs of `dims` elements and an LSE each. */
struct RowOutputs {
  assay_dtype dtype = ASSAY_BF16;
  assay_lse_base lse_base = ASSAY_LSE_BASE_E;
  int32_t empty_lse = 0; ///< what the LSE of a row without keys must be (assay_empty_lse)
  int dims = 0, heads = 0;
  std::vector<int64_t> o_at, lse_at; ///< [rows] of head 0
  int64_t out_stride_head = 0, lse_stride_head = 0;

  int rows() const { return static_cast<int>(o_at.size()); }
};

/** Scales of the tokens of a pool, of each head and block of elements. */
struct TokenScales {
  const float *data = nullptr;
  int blocks = 1;
  int64_t stride_token = 0, stride_head = 0, stride_block = 0;
};

/** A pool of keys and values. Strides in elements. */
struct KeyPool {
  const void *k = nullptr, *v = nullptr;
  int64_t k_stride_token = 0, k_stride_head = 0;
  int64_t v_stride_token = 0, v_stride_head = 0;
  TokenScales k_scales = {}, v_scales = {};
};

/** Keys that follow each other in one page of a pool. K and V need not share pages. */
struct KeyRun {
  int32_t position; ///< position of the first of them in its list
  int32_t count;
  int32_t pool;
  int64_t k_at, v_at;                     ///< place of the first of them, kv head 0
  int64_t k_scale_at = 0, v_scale_at = 0; ///< place of its scales, kv head 0
};

/** What a query head brings along. */
struct HeadInput {
  int kv_head = 0;
  float k_scale = 1.0f, v_scale = 1.0f; ///< scales of fp8 K and V
  float slope = 0.0f;                   ///< slope of ALiBi, natural base
  float sink = 0.0f;                    ///< a logit, natural base
};

/**
 * Attention: a row sees the keys [begin, end) of one list. A list holds the keys of a request in
 * logical order; the last key that a row sees stands `behind` positions behind the row's own.
 */
struct AttentionRows {
  RowOutputs out;
  assay_dtype q_dtype = ASSAY_BF16, kv_dtype = ASSAY_BF16;
  int head_dim = 0; ///< dims of q and k; v has out.dims
  float sm_scale = 1.0f, softcap = 0.0f;
  float o_scale = 1.0f; ///< outputs are stored divided by it
  bool alibi = false, sinks = false;

  std::vector<KeyPool> pools;
  std::vector<KeyRun> runs;
  std::vector<int64_t> first_run;      ///< [lists + 1]: list l holds the runs from first_run[l]
  int levels = 1;                      ///< parts of a list that a kernel attends to apart
  std::vector<int32_t> level_position; ///< [lists, levels] where each level begins in its list

  const void *q = nullptr;
  std::vector<int64_t> q_at; ///< [rows] of head 0
  int64_t q_stride_head = 0;
  std::vector<int32_t> list, begin, end; ///< [rows]
  std::vector<int32_t> behind;           ///< [rows]; empty: 0 for all
  Shard shard;                           ///< which tokens every list holds
  /// [rows] keys from the first to the last that a row sees, hidden ones between them counted;
  /// empty: none are hidden.
  std::vector<int32_t> span;
  std::vector<float> q_scale;   ///< [rows, heads] of fp8 q; empty: 1
  std::vector<HeadInput> heads; ///< [out.heads]

  int num_splits = 0; ///< asked for by the call, of a level of a row; 0: the kernel chooses

  int lists() const { return static_cast<int>(first_run.size()) - 1; }
  int keys(int row) const {
    return end[static_cast<size_t>(row)] - begin[static_cast<size_t>(row)];
  }
  /// How many blocks the scales of tokens divide a key or a value into; 0: tokens have none.
  int scale_blocks() const {
    if (pools.empty() || (!pools[0].k_scales.data && !pools[0].v_scales.data)) return 0;
    return pools[0].k_scales.blocks > pools[0].v_scales.blocks ? pools[0].k_scales.blocks
                                                               : pools[0].v_scales.blocks;
  }
  /// K and V are fp8, with a scale of the call or of a head.
  bool fp8() const {
    return (kv_dtype == ASSAY_E4M3 || kv_dtype == ASSAY_E5M2) && scale_blocks() == 0;
  }
  bool q_fp8() const { return q_dtype == ASSAY_E4M3 || q_dtype == ASSAY_E5M2; }
};

/** An array of stored states: O in the type of the outputs, and LSE. */
struct StateArray {
  const void *o = nullptr;
  const float *lse = nullptr;
  int64_t out_stride_head = 0, lse_stride_head = 0;
};

/** A stored state of one row, all heads. */
struct StoredState {
  int32_t array;
  int64_t o_at, lse_at; ///< place of head 0
};

/** Merges: row r merges the states [first[r], first[r + 1]). */
struct MergeRows {
  RowOutputs out;
  std::vector<StateArray> arrays;
  std::vector<StoredState> states;
  std::vector<int64_t> first; ///< [rows + 1]
};

using CallRows = std::variant<AttentionRows, MergeRows>;

inline const RowOutputs &outputs_of(const CallRows &rows) {
  return std::visit([](const auto &r) -> const RowOutputs & { return r.out; }, rows);
}

} // namespace assay::oracle
