// SPDX-License-Identifier: Apache-2.0
// tree_attention of ASSAY_TARGET: its planner, and the instantiation that a call needs.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/blocks/find_instantiation.h"
#include "kernels/blocks/plan_launch.cuh"
#include "kernels/plan/tree_kernel.cuh"
#include "kernels/tree/tree_launch.h"

namespace assay::ASSAY_TARGET {

/// The executor runs one thread at a time.
inline constexpr int kTreeThreads = ASSAY_IS_CUDA ? 1024 : 64;

/// One kernel finds the tree and plans the unique suffix. Where there is no tree to find, that of
/// paged_attention_v2 plans.
inline assay_status launch_tree_attention_plan(const TreePlanCall &call, void *stream) {
  const bool none = call.tree.shape.batch == 0;
  const TreeOutput output = none ? TreeOutput{} : tree_output_of(call);
  if (none || call.keeps_tree)
    return launch_plan_kernel(call.own, call.tree.seq_lens, call.plan, stream, output.covered);
  const PlanParams plan = plan_params(call.own, call.tree.seq_lens, call.plan, output.covered);
  return launch_kernel<&tree_kernel<kTreeThreads>, sizeof(TreeKernelStorage)>(
      "tree_plan", {1, kTreeThreads}, TreeKernelParams{call.tree, output, plan}, stream);
}

/// One planner serves all calls.
inline assay_status find_tree_attention_plan(const TreePlanCall &, Launch<TreePlanCall> &launch) {
  launch = &launch_tree_attention_plan;
  return ASSAY_OK;
}

template <class Query, class Kv, int kHeadDim>
assay_status launch_tree_kernels(const TreeCall &call, void *stream) {
  if (call.own.run_planner) ASSAY_RETURN_IF_ERROR(launch_tree_attention_plan(call.planner, stream));
  return TreeLaunch<Query, Kv, kHeadDim>::run(call, stream);
}

struct TreeInstantiation {
  assay_dtype dtype, kv_dtype;
  int head_dim;
  Launch<TreeCall> launch;
};

inline constexpr TreeInstantiation kTree[] = {
#define ASSAY_INSTANTIATE(query, dtype, kv, kv_dtype, head_dim)                                    \
  {dtype, kv_dtype, head_dim, &launch_tree_kernels<arch::query, arch::kv, head_dim>},
#if ASSAY_IS_CUDA
#define ASSAY_INSTANTIATE_SIMT(...)
#else
#define ASSAY_INSTANTIATE_SIMT ASSAY_INSTANTIATE
#endif
#include "kernels/tree/instantiations.def"
#undef ASSAY_INSTANTIATE
#undef ASSAY_INSTANTIATE_SIMT
};

/// Finds the kernels of a call that may share keys.
inline assay_status find_tree_kernels(const TreeCall &call, Launch<TreeCall> &launch) {
  const TreeInstantiation *found = nullptr;
  ASSAY_RETURN_IF_ERROR(find_instantiation(kTree, call.own.paged.shape, found));
  launch = found->launch;
  return ASSAY_OK;
}

} // namespace assay::ASSAY_TARGET
