// SPDX-License-Identifier: Apache-2.0
// The C entry points: build the call, find the instantiation, launch.
#include "kernels/launch/calls.h"
#include "kernels/launch/checks.h"
#include "kernels/launch/choose.h"
#include "kernels/launch/device_info.h"
#include "kernels/launch/own_kernels.h"

namespace assay {
namespace {

/// Params may be null or broken here; the call builder reports that, whatever table it gets.
template <class Params>
const KernelTable &table_for(const Params *params) {
#ifdef ASSAY_WITH_CUDA
  if (params != nullptr && params->target == ASSAY_TARGET_CUDA) return n_cuda::kernel_table();
#else
  (void)params; // check_target() refuses cuda
#endif
  return n_simt::kernel_table();
}

/// The instantiation for a checked call. check_decode_shape() and instantiations.def must agree.
assay_status find_decode(const KernelTable &table, assay_dtype dtype, assay_dtype kv_dtype,
                         int head_dim, const KernelTable::Decode *&decode) {
  decode = table.find(dtype, kv_dtype, head_dim);
  return decode != nullptr
             ? ASSAY_OK
             : fail(ASSAY_UNSUPPORTED, "no instantiation for dtype {}, kv_dtype {}, head_dim {}",
                    dtype, kv_dtype, head_dim);
}

assay_status run_plan(const assay_plan_params *params) {
  SplitPlanShape shape;
  ASSAY_RETURN_IF_ERROR(plan_shape(params, shape));
  if (shape.batch == 0) return set_ok();
  ASSAY_RETURN_IF_ERROR(check_pointer("seq_lens", params->seq_lens, 4));
  ASSAY_RETURN_IF_ERROR(check_pointer("plan", params->plan, 16));
  const auto needed = static_cast<uint64_t>(plan_layout(shape).bytes);
  if (params->plan_bytes < needed)
    return fail(ASSAY_WORKSPACE_TOO_SMALL, "plan_bytes is {}, this plan needs {}",
                params->plan_bytes, needed);
  ASSAY_RETURN_IF_ERROR(table_for(params).plan(
      shape, params->seq_lens, static_cast<int32_t *>(params->plan), params->stream));
  return set_ok();
}

assay_status check_bytes(uint64_t *bytes) {
  return bytes != nullptr ? ASSAY_OK : fail(ASSAY_INVALID_ARGUMENT, "bytes is null");
}

} // namespace

assay_status run_v1(const KernelTable &table, const assay_paged_params *params, bool launch) {
  PagedCall call{};
  ASSAY_RETURN_IF_ERROR(build_paged_call(params, call));
  const KernelTable::Decode *decode = nullptr;
  ASSAY_RETURN_IF_ERROR(
      find_decode(table, params->dtype, params->kv_dtype, params->head_dim, decode));
  if (!call.empty && launch) ASSAY_RETURN_IF_ERROR(decode->v1(call, params->stream));
  return set_ok();
}

assay_status run_v2(const KernelTable &table, const assay_paged_params *params, bool launch) {
  PagedV2Call call{};
  ASSAY_RETURN_IF_ERROR(build_v2_call(params, call));
  const KernelTable::Decode *decode = nullptr;
  ASSAY_RETURN_IF_ERROR(
      find_decode(table, params->dtype, params->kv_dtype, params->head_dim, decode));
  if (!call.paged.empty && launch) ASSAY_RETURN_IF_ERROR(decode->v2(call, params->stream));
  return set_ok();
}

assay_status run_cascade(const KernelTable &table, const assay_cascade_params *params,
                         bool launch) {
  CascadeCall call{};
  ASSAY_RETURN_IF_ERROR(build_cascade_call(params, call));
  const KernelTable::Decode *decode = nullptr;
  ASSAY_RETURN_IF_ERROR(find_decode(table, params->dtype, params->dtype, params->head_dim, decode));
  if (!call.empty && launch) ASSAY_RETURN_IF_ERROR(decode->cascade(call, params->stream));
  return set_ok();
}

assay_status run_merge_state(const KernelTable &table, const assay_merge_state_params *params,
                             bool launch) {
  MergeStateCall call{};
  ASSAY_RETURN_IF_ERROR(build_merge_state_call(params, call));
  if (!call.empty && launch) ASSAY_RETURN_IF_ERROR(table.merge_state(call, params->stream));
  return set_ok();
}

assay_status run_merge_states(const KernelTable &table, const assay_merge_states_params *params,
                              bool launch) {
  MergeStatesCall call{};
  ASSAY_RETURN_IF_ERROR(build_merge_states_call(params, call));
  if (!call.empty && launch) ASSAY_RETURN_IF_ERROR(table.merge_states(call, params->stream));
  return set_ok();
}

} // namespace assay

using namespace assay;

extern "C" {

assay_status assay_paged_attention_v1(const assay_paged_params *params) {
  return run_v1(table_for(params), params, true);
}
assay_status assay_paged_attention_v2(const assay_paged_params *params) {
  return run_v2(table_for(params), params, true);
}
assay_status assay_cascade_attention(const assay_cascade_params *params) {
  return run_cascade(table_for(params), params, true);
}
assay_status assay_merge_state(const assay_merge_state_params *params) {
  return run_merge_state(table_for(params), params, true);
}
assay_status assay_merge_states(const assay_merge_states_params *params) {
  return run_merge_states(table_for(params), params, true);
}
assay_status assay_paged_attention_choose(const assay_paged_params *params, int64_t total_tokens,
                                          int32_t max_seq_len, assay_paged_choice *choice) {
  ASSAY_RETURN_IF_ERROR(choose_version(params, total_tokens, max_seq_len, choice));
  return set_ok();
}
assay_status assay_plan(const assay_plan_params *params) { return run_plan(params); }

assay_status assay_paged_attention_v1_supports(const assay_paged_params *params) {
  return run_v1(table_for(params), params, false);
}
assay_status assay_paged_attention_v2_supports(const assay_paged_params *params) {
  return run_v2(table_for(params), params, false);
}
assay_status assay_cascade_attention_supports(const assay_cascade_params *params) {
  return run_cascade(table_for(params), params, false);
}
assay_status assay_merge_state_supports(const assay_merge_state_params *params) {
  return run_merge_state(table_for(params), params, false);
}
assay_status assay_merge_states_supports(const assay_merge_states_params *params) {
  return run_merge_states(table_for(params), params, false);
}

assay_status assay_paged_attention_v2_workspace_size(const assay_paged_params *params,
                                                     uint64_t *bytes) {
  ASSAY_RETURN_IF_ERROR(check_bytes(bytes));
  V2Workspace layout;
  ASSAY_RETURN_IF_ERROR(v2_workspace(params, layout));
  *bytes = layout.bytes;
  return set_ok();
}

assay_status assay_cascade_attention_workspace_size(const assay_cascade_params *params,
                                                    uint64_t *bytes) {
  ASSAY_RETURN_IF_ERROR(check_bytes(bytes));
  CascadeCall call{};
  ASSAY_RETURN_IF_ERROR(cascade_layout(params, call));
  *bytes = call.bytes;
  return set_ok();
}

assay_status assay_plan_size(const assay_plan_params *params, uint64_t *bytes) {
  ASSAY_RETURN_IF_ERROR(check_bytes(bytes));
  SplitPlanShape shape;
  ASSAY_RETURN_IF_ERROR(plan_shape(params, shape));
  *bytes = plan_layout(shape).bytes;
  return set_ok();
}

} // extern "C"
