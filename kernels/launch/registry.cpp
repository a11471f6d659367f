// SPDX-License-Identifier: Apache-2.0
// Our kernels in the table third parties fill: the harness has no other way to reach them.
#include "kernels/abi/plugin.h"
#include "kernels/cascade/cascade_policy.h"
#include "kernels/decode/decode_policy.h"
#include "kernels/launch/device_info.h"
#include "kernels/launch/key_order.h"
#include "kernels/launch/own_kernels.h"

#include <algorithm>

namespace assay {
namespace {

template <auto kFunction, class Params>
assay_status call(const void *params) {
  return kFunction(static_cast<const Params *>(params));
}
template <auto kFunction, class Params>
assay_status call(const void *params, uint64_t *bytes) {
  return kFunction(static_cast<const Params *>(params), bytes);
}

// PTX ISA limits of ex2.approx.ftz (2 ulp), lg2.approx.ftz (2^-22 for results near 0, else
// relative) and rcp.approx.ftz (1 ulp).
constexpr double kUlp22 = 0x1p-22, kUlp23 = 0x1p-23;
// bf16 queries meet fp8 keys as fp16, scaled by a power of two to below 2^15: steps of 2^-24 lose
// 2^-25 at most.
constexpr double kQueryError = 0x1p-39;
// 1 - 2 / (1 + 2^x): see kernels/common/score_hooks.cuh.
constexpr double kTanhError = 3 * 0x1p-22;
// m16n8k16 on Hopper: blocks of 16 products, addends truncated 25 bits below the largest exponent.
constexpr int kMmaBlock = 16, kMmaFractionBits = 25;

/// A row sum adds two weights per 16 keys in a lane, then three shuffles join the lanes.
constexpr int sum_depth(int tile) { return 2 * (tile / 16) + 3; }

constexpr assay_arithmetic tensor_core_arithmetic(int tile, int deepest, int states) {
  return {.mma_block = kMmaBlock,
          .mma_fraction_bits = kMmaFractionBits,
          .p_rounded = 1,
          .sum_depth = sum_depth(deepest),
          .q_abs_error = kQueryError,
          .exp2_rel_error = kUlp22,
          .log2_abs_error = kUlp22,
          .rcp_rel_error = kUlp23,
          .tanh_abs_error = kTanhError,
          .tile_tokens = tile,
          .max_parallel_states = states};
}
constexpr assay_arithmetic merge_arithmetic() {
  assay_arithmetic a{};
  a.exp2_rel_error = a.log2_abs_error = kUlp22;
  a.rcp_rel_error = kUlp23;
  a.max_parallel_states = 1;
  return a;
}

/// Tiles have 16, 32 or 64 keys (decode_policy): the deepest sum and the smallest tile bound all.
constexpr int kDecodeTile = decode_policy(128, 2, 1, kV1Warps).tile;
constexpr int kDeepestTile = decode_policy(64, 1, 1, kV1Warps).tile;
constexpr assay_arithmetic kV1Arithmetic =
    tensor_core_arithmetic(kDecodeTile, kDeepestTile, kV1Warps);
constexpr assay_arithmetic kV2Arithmetic =
    tensor_core_arithmetic(kDecodeTile, kDeepestTile, 8); // or 4 warps
/// Its kernels differ: the smallest tile (of the narrow one), the deepest sum (of the wide one, where
/// a lane adds pairs of weights, one per 8 keys, and two shuffles join lanes) and the most states
/// bound all.
constexpr assay_arithmetic cascade_arithmetic() {
  assay_arithmetic a = tensor_core_arithmetic(kDecodeTile, kDecodeTile, kNarrowWarps);
  a.sum_depth = 1 + wide_tile(128) / 8 + 2;
  return a;
}
constexpr assay_arithmetic kCascadeArithmetic = cascade_arithmetic();
static_assert(kCascadeArithmetic.sum_depth >= sum_depth(cascade_policy(128).tile));

/// The plan that serves a call.
assay_plan_params plan_of(const assay_paged_params &p) {
  assay_plan_params plan{};
  plan.struct_size = sizeof plan;
  plan.target = p.target;
  plan.dtype = p.dtype;
  plan.kv_dtype = p.kv_dtype;
  plan.batch = p.batch;
  plan.q_len = p.q_len;
  plan.num_qo_heads = p.num_qo_heads;
  plan.num_kv_heads = p.num_kv_heads;
  plan.head_dim = p.head_dim;
  plan.window = p.window;
  plan.max_seq_len = p.kv.max_pages * p.kv.page_size;
  plan.num_splits = p.num_splits;
  plan.seq_lens = p.kv.seq_lens;
  plan.plan = p.plan;
  plan.plan_bytes = p.plan_bytes;
  plan.stream = p.stream;
  return plan;
}
assay_status v2_plan_size(const assay_paged_params *p, uint64_t *bytes) {
  const assay_plan_params plan = plan_of(*p);
  return assay_plan_size(&plan, bytes);
}
assay_status v2_plan(const assay_paged_params *p) {
  const assay_plan_params plan = plan_of(*p);
  return assay_plan(&plan);
}

} // namespace

std::array<assay_kernel, 5> own_kernels(assay_target target) {
  constexpr uint32_t kSize = sizeof(assay_kernel);
  constexpr assay_determinism kSame = ASSAY_DETERMINISM_RUN_TO_RUN;
  return {{
      {kSize, "paged_attention_v1", ASSAY_FAMILY_PAGED, target, kSame, kV1Arithmetic,
       &call<&assay_paged_attention_v1_supports, assay_paged_params>, nullptr,
       &call<&assay_paged_attention_v1, assay_paged_params>, &assay_last_error, &v1_key_order,
       nullptr, nullptr},
      {kSize, "paged_attention_v2", ASSAY_FAMILY_PAGED, target, kSame, kV2Arithmetic,
       &call<&assay_paged_attention_v2_supports, assay_paged_params>,
       &call<&assay_paged_attention_v2_workspace_size, assay_paged_params>,
       &call<&assay_paged_attention_v2, assay_paged_params>, &assay_last_error, &v2_key_order,
       &call<&v2_plan_size, assay_paged_params>, &call<&v2_plan, assay_paged_params>},
      {kSize, "cascade_attention", ASSAY_FAMILY_CASCADE, target, kSame, kCascadeArithmetic,
       &call<&assay_cascade_attention_supports, assay_cascade_params>,
       &call<&assay_cascade_attention_workspace_size, assay_cascade_params>,
       &call<&assay_cascade_attention, assay_cascade_params>, &assay_last_error, &cascade_key_order,
       nullptr, nullptr},
      {kSize, "merge_state", ASSAY_FAMILY_MERGE_STATE, target, kSame, merge_arithmetic(),
       &call<&assay_merge_state_supports, assay_merge_state_params>, nullptr,
       &call<&assay_merge_state, assay_merge_state_params>, &assay_last_error, nullptr, nullptr,
       nullptr},
      {kSize, "merge_states", ASSAY_FAMILY_MERGE_STATES, target, kSame, merge_arithmetic(),
       &call<&assay_merge_states_supports, assay_merge_states_params>, nullptr,
       &call<&assay_merge_states, assay_merge_states_params>, &assay_last_error, nullptr, nullptr,
       nullptr},
  }};
}

namespace {

/// Targets the library was built with, simt first.
const assay_plugin &own_plugin() {
  static const auto kKernels = [] {
    std::array<assay_kernel, 10> all{};
    const auto simt = own_kernels(ASSAY_TARGET_SIMT), cuda = own_kernels(ASSAY_TARGET_CUDA);
    std::copy(simt.begin(), simt.end(), all.begin());
    std::copy(cuda.begin(), cuda.end(), all.begin() + 5);
    return all;
  }();
  static const assay_plugin kPlugin = {
      sizeof(assay_plugin),       ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, "assay",
      built_with_cuda() ? 10 : 5, kKernels.data()};
  return kPlugin;
}

} // namespace
} // namespace assay

extern "C" const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &assay::own_plugin() : nullptr;
}
