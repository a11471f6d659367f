// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/launch/launch_kernel.cuh"
#include "kernels/launch/merge_calls.h"
#include "kernels/merge/merge_state.cuh"
#include "kernels/merge/merge_states.cuh"

namespace assay::ASSAY_TARGET {

inline int64_t merge_blocks(int64_t threads) {
  return (threads + kMergeThreads - 1) / kMergeThreads;
}

inline assay_status launch_merge_state(const MergeStateCall &call, void *stream) {
  MergeStateParams params{};
  params.a = call.a;
  params.b = call.b;
  params.out = call.out;
  params.num_states = call.num_rows * call.num_heads;
  params.num_heads = call.num_heads;
  params.head_dim = call.head_dim;
  params.lanes_per_state = 1;
  while (params.lanes_per_state < 32 && params.lanes_per_state * 8 < call.head_dim)
    params.lanes_per_state *= 2;
  params.scale = call.scale;
  params.unit = call.unit;
  const LaunchShape shape = {merge_blocks(params.num_states * params.lanes_per_state),
                             kMergeThreads};
  switch (call.dtype) {
  case ASSAY_FP16:
    return launch_kernel(&merge_state<arch::fp16>, "merge_state", shape, params, stream);
  case ASSAY_BF16:
    return launch_kernel(&merge_state<arch::bf16>, "merge_state", shape, params, stream);
#if !ASSAY_IS_CUDA
  case ASSAY_FIELD61:
    return launch_kernel(&merge_state<arch::field>, "merge_state", shape, params, stream);
#endif
  default:
    return launch_kernel(&merge_state<float>, "merge_state", shape, params, stream);
  }
}

inline assay_status launch_merge_states(const MergeStatesCall &call, void *stream) {
  MergeStatesParams params{};
  params.in = call.in;
  params.out = call.out;
  params.indptr = call.indptr;
  params.num_rows = call.num_rows;
  params.num_states = call.num_states;
  params.num_heads = call.num_heads;
  params.head_dim = call.head_dim;
  params.scale = call.scale;
  params.unit = call.unit;
  const LaunchShape shape = {merge_blocks(call.num_rows * call.num_heads * (call.head_dim / 8)),
                             kMergeThreads};
  switch (call.dtype) {
  case ASSAY_FP16:
    return launch_kernel(&merge_states<arch::fp16>, "merge_states", shape, params, stream);
  case ASSAY_BF16:
    return launch_kernel(&merge_states<arch::bf16>, "merge_states", shape, params, stream);
#if !ASSAY_IS_CUDA
  case ASSAY_FIELD61:
    return launch_kernel(&merge_states<arch::field>, "merge_states", shape, params, stream);
#endif
  default:
    return launch_kernel(&merge_states<float>, "merge_states", shape, params, stream);
  }
}

} // namespace assay::ASSAY_TARGET
