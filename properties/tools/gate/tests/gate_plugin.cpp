// SPDX-License-Identifier: Apache-2.0
// A plugin as a stranger writes one: merges two states, fp32 only. The tests of the gate put it
// into a repository of its own and change it.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugin.h"

namespace {

const char *reason = "";
const char *last_error() { return reason; }

assay_status supports(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  if (p.dtype == ASSAY_FP32) return ASSAY_OK;
  reason = "dtype: fp32 only";
  return ASSAY_UNSUPPORTED;
}

struct State {
  const float *o;
  float lse;
};

float merge_row(State a, State b, bool base2, int head_dim, float *o) {
  const float top = std::max(a.lse, b.lse);
  if (a.lse == -INFINITY && b.lse == -INFINITY) {
    std::fill(o, o + head_dim, 0.0f);
    return -INFINITY;
  }
  if (a.lse == -INFINITY || b.lse == -INFINITY) {
    const State &live = a.lse == -INFINITY ? b : a;
    std::copy(live.o, live.o + head_dim, o);
    return live.lse;
  }
  const float to_base2 = base2 ? 1.0f : 1.44269504f;
  const float wa = std::exp2((a.lse - top) * to_base2);
  const float wb = std::exp2((b.lse - top) * to_base2);
  const float sum = wa + wb;
  for (int i = 0; i < head_dim; ++i)
    o[i] = (wa * a.o[i] + wb * b.o[i]) * (1.0f / sum);
  return top + std::log2(sum) / to_base2;
}

assay_status run(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  const auto *a = static_cast<const float *>(p.o_a), *b = static_cast<const float *>(p.o_b);
  for (int64_t r = 0; r < p.num_rows; ++r)
    for (int64_t h = 0; h < p.num_heads; ++h) {
      const float lse =
          merge_row({a + r * p.o_a_stride_row + h * p.o_a_stride_head,
                     p.lse_a[r * p.lse_a_stride_row + h * p.lse_a_stride_head]},
                    {b + r * p.o_b_stride_row + h * p.o_b_stride_head,
                     p.lse_b[r * p.lse_b_stride_row + h * p.lse_b_stride_head]},
                    p.lse_base == ASSAY_LSE_BASE_2, p.head_dim,
                    static_cast<float *>(p.out) + r * p.out_stride_row + h * p.out_stride_head);
      if (p.lse != nullptr) p.lse[r * p.lse_stride_row + h * p.lse_stride_head] = lse;
    }
  return ASSAY_OK;
}

constexpr double kExp2Error = 0x1p-22;

assay_arithmetic declared() {
  assay_arithmetic a = {};
  a.p_format = ASSAY_FORMAT_FP32;
  a.sum_format = ASSAY_FORMAT_FP32;
  a.exponential = ASSAY_EXP_BASE2;
  a.sum_depth = 1;
  a.exp2_rel_error = kExp2Error;
  a.log2_abs_error = 0x1p-21;
  a.rcp_rel_error = 0x1p-22;
  a.tile_tokens = 1;
  a.max_parallel_states = 1;
  return a;
}

const assay_kernel kKernel = {sizeof(assay_kernel),
                              "tiny_merge",
                              ASSAY_FAMILY_MERGE_STATE,
                              ASSAY_TARGET_SIMT,
                              ASSAY_DETERMINISM_RUN_TO_RUN,
                              ASSAY_BATCH_ALWAYS,
                              0,
                              declared(),
                              supports,
                              nullptr,
                              run,
                              last_error,
                              nullptr,
                              nullptr,
                              nullptr};
const assay_plugin kPlugin = {
    sizeof(assay_plugin), ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, "tiny", 1, &kKernel};

} // namespace

extern "C" const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
