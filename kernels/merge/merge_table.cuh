// SPDX-License-Identifier: Apache-2.0
// The merge kernels of ASSAY_TARGET: a kernel per element type, for any head_dim.
#pragma once

#include <type_traits>

#include "kernels/abi/plugin.h"
#include "kernels/host/find.h"
#include "kernels/host/launch_kernel.cuh"
#include "kernels/merge/merge_call.h"
#include "kernels/merge/merge_few_states.cuh"
#include "kernels/merge/merge_many_states.cuh"
#include "kernels/merge/merge_state.cuh"
#include "kernels/merge/merge_states.cuh"

namespace assay::ASSAY_TARGET {

/// Calls f with the element type of a checked call.
template <class F>
assay_status with_merge_element(assay_dtype dtype, F f) {
  switch (dtype) {
  case ASSAY_FP16:
    return f(std::type_identity<arch::fp16>{});
  case ASSAY_BF16:
    return f(std::type_identity<arch::bf16>{});
#if !ASSAY_IS_CUDA
  case ASSAY_FIELD61:
    return f(std::type_identity<arch::field>{});
#endif
  default:
    return f(std::type_identity<float>{});
  }
}

inline assay_status launch_merge_state(const MergeStateCall &call, void *stream) {
  return with_merge_element(call.dtype, [&](auto element) {
    using E = typename decltype(element)::type;
    return launch_kernel<&merge_state<E>>("merge_state", {call.blocks, kMergeThreads}, call.params,
                                          stream);
  });
}

template <class E, int kLanes>
assay_status launch_merge_states_of(const MergeStatesCall &call, void *stream) {
  if (call.params.workers == 1)
    return launch_kernel<&merge_states<E, kLanes>>("merge_states", {call.blocks, call.threads},
                                                   call.params, stream);
  constexpr size_t kSharedBytes = sizeof(typename MergeManyStates<E, kLanes>::SharedStorage);
  return launch_kernel<&merge_many_states<E, kLanes>, kSharedBytes>(
      "merge_many_states", {call.blocks, call.threads}, call.params, stream);
}

template <class E, int kStates>
assay_status launch_merge_few_states(const MergeStatesCall &call, void *stream) {
  return launch_kernel<&merge_few_states<E, kStates>>(
      "merge_few_states", {call.blocks, call.threads}, call.params, stream);
}

inline assay_status launch_merge_states(const MergeStatesCall &call, void *stream) {
  return with_merge_element(call.dtype, [&](auto element) {
    using E = typename decltype(element)::type;
    const int states = call.params.num_states;
    if (states <= kMaxFewStates) return launch_merge_few_states<E, kMaxFewStates>(call, stream);
    if (call.params.lanes_log2 == 3) return launch_merge_states_of<E, 8>(call, stream);
    if (call.params.lanes_log2 == 4) return launch_merge_states_of<E, 16>(call, stream);
    return launch_merge_states_of<E, 32>(call, stream);
  });
}

/// There is one for every element type that a checked call has.
inline assay_status find_merge_state(const MergeStateCall &, Launch<MergeStateCall> &launch) {
  launch = &launch_merge_state;
  return ASSAY_OK;
}
inline assay_status find_merge_states(const MergeStatesCall &, Launch<MergeStatesCall> &launch) {
  launch = &launch_merge_states;
  return ASSAY_OK;
}

} // namespace assay::ASSAY_TARGET
