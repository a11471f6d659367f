// SPDX-License-Identifier: Apache-2.0
// tree_attention of ASSAY_TARGET: its planner, and the instantiation that a call needs.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/blocks/plan_launch.cuh"
#include "kernels/plan/tree_kernel.cuh"
#include "kernels/tree/tree_launch.h"

namespace assay::ASSAY_TARGET {

struct TreeInstantiation {
  assay_dtype dtype, kv_dtype;
  int head_dim;
  assay_status (*run)(const TreeCall &, void *stream);
};

inline constexpr TreeInstantiation kTree[] = {
#define ASSAY_INSTANTIATE(query, dtype, kv, kv_dtype, head_dim)                                    \
  {dtype, kv_dtype, head_dim, &TreeLaunch<arch::query, arch::kv, head_dim>::run},
#if ASSAY_IS_CUDA
#define ASSAY_INSTANTIATE_SIMT(...)
#else
#define ASSAY_INSTANTIATE_SIMT ASSAY_INSTANTIATE
#endif
#include "kernels/tree/instantiations.def"
#undef ASSAY_INSTANTIATE
#undef ASSAY_INSTANTIATE_SIMT
};

/// The executor runs one thread at a time.
inline constexpr int kTreeThreads = ASSAY_IS_CUDA ? 1024 : 64;

/// Finds the tree, then plans the unique suffix.
inline assay_status launch_tree_plan(const TreePlanCall &call, void *stream, bool launch) {
  if (!launch) return ASSAY_OK;
  const int32_t *covered = nullptr;
  if (call.tree.shape.batch > 0) {
    const TreeKernelParams params{call.tree, tree_output_of(call)};
    covered = params.output.covered;
    ASSAY_RETURN_IF_ERROR(launch_kernel(&tree_kernel<kTreeThreads>, "tree_plan",
                                        {1, kTreeThreads, sizeof(TreeScratch)}, params, stream));
  }
  return launch_plan_kernel(call.own, call.tree.seq_lens, call.plan, stream, covered);
}

/// Of a call that may share keys.
inline assay_status launch_tree_kernels(const TreeCall &call, void *stream, bool launch) {
  const PagedShape &s = call.own.paged.shape;
  for (const TreeInstantiation &i : kTree) {
    if (i.dtype != s.dtype || i.kv_dtype != s.kv_dtype || i.head_dim != s.head_dim) continue;
    if (!launch) return ASSAY_OK;
    if (call.own.run_planner) ASSAY_RETURN_IF_ERROR(launch_tree_plan(call.planner, stream, true));
    return i.run(call, stream);
  }
  return no_instantiation(s.dtype, s.kv_dtype, s.head_dim);
}

} // namespace assay::ASSAY_TARGET
