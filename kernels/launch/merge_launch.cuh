// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/launch/launch_kernel.cuh"
#include "kernels/launch/merge_calls.h"
#include "kernels/merge/merge_state.cuh"
#include "kernels/merge/merge_states.cuh"

namespace assay::ASSAY_TARGET {

inline int64_t merge_blocks(int64_t threads) {
  constexpr int64_t kBlock = kMergeThreads * kMergeGroupStates;
  return (threads + kBlock - 1) / kBlock;
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

template <class E, int kLanes>
assay_status launch_merge_states_of(const MergeStatesParams &params, void *stream) {
  constexpr int kWorkers = MergeStates<E, kLanes>::kWorkers;
  const int64_t workers = params.num_rows * params.num_heads * params.workers;
  const size_t shared_bytes =
      params.workers > 1 ? sizeof(typename MergeStates<E, kLanes>::SharedStorage) : 0;
  return launch_kernel(&merge_states<E, kLanes>, "merge_states",
                       {(workers + kWorkers - 1) / kWorkers, kMergeStatesThreads, shared_bytes},
                       params, stream);
}

template <class E>
assay_status launch_merge_states_of(const MergeStatesParams &params, void *stream) {
  const int lanes = merge_lanes(params.head_dim);
  if (lanes == 8) return launch_merge_states_of<E, 8>(params, stream);
  if (lanes == 16) return launch_merge_states_of<E, 16>(params, stream);
  return launch_merge_states_of<E, 32>(params, stream);
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
  params.workers = merge_workers(call.num_states, merge_lanes(call.head_dim));
  params.scale = call.scale;
  params.unit = call.unit;
  switch (call.dtype) {
  case ASSAY_FP16:
    return launch_merge_states_of<arch::fp16>(params, stream);
  case ASSAY_BF16:
    return launch_merge_states_of<arch::bf16>(params, stream);
#if !ASSAY_IS_CUDA
  case ASSAY_FIELD61:
    return launch_merge_states_of<arch::field>(params, stream);
#endif
  default:
    return launch_merge_states_of<float>(params, stream);
  }
}

} // namespace assay::ASSAY_TARGET
