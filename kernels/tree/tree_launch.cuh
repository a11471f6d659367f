// SPDX-License-Identifier: Apache-2.0
// Definitions of TreeLaunch; included only by the generated instantiations.
#pragma once

#include "kernels/blocks/with_core.cuh"
#include "kernels/host/launch_kernel.cuh"
#include "kernels/tree/tree_attention.cuh"
#include "kernels/tree/tree_launch.h"

namespace assay::ASSAY_TARGET {

template <class Core>
assay_status launch_tree_shared(const TreeCall &call, void *stream) {
  static_assert(sizeof(TreeStorage<Core>) <= kMaxSm90Bytes);
  const PagedCall &paged = call.own.paged;
  const TreeOutput tree = tree_output_of(call.planner);
  const TreeSharedParams params{paged.attention,
                                paged.kv,
                                paged.features,
                                FastDivisor::make(paged.features.query_rows),
                                FastDivisor::make(paged.attention.gqa_group_size),
                                tree.items,
                                tree.members,
                                call.planner.tree.shape.blocks,
                                call.shared.o_accum,
                                call.shared.lse_accum};
  // The planner of this call is in front of it, and all that it reads from the plan is late.
  const bool enable_pdl = paged.attention.enable_pdl && !call.own.run_planner;
  return launch_kernel<&tree_shared<Core>, sizeof(TreeStorage<Core>)>(
      "tree_shared", {params.blocks, Core::kThreads, enable_pdl}, params, stream);
}

template <class Core>
assay_status launch_tree_own(const TreeCall &call, void *stream) {
  TreeAttentionParams params{};
  params.own = split_kv_params(call.own);
  params.own.attention.enable_pdl = false; // tree_shared has waited for what it says
  params.coords = tree_output_of(call.planner).coords;
  params.shared = call.shared;
  const SplitPlanShape &shape = call.own.split.plan;
  return launch_kernel<&tree_attention<Core>, sizeof(typename Core::SharedStorage)>(
      "tree_attention", {int64_t{shape.workers} * shape.head_tiles, Core::kThreads, true}, params,
      stream);
}

/// The kernel of shared keys that serves the call: softcap and ALiBi have one of their own.
template <class Query, class Kv, int kHeadDim>
assay_status launch_shared_keys(const TreeCall &call, void *stream) {
  using Types = DecodeTypes<Query, Kv>;
  if constexpr (std::is_same_v<typename arch::Arithmetic<Query>::Number, float>) {
    const FeatureParams &f = call.own.paged.features;
    if (f.softcap_log2 > 0.0f || f.alibi_slopes != nullptr)
      return launch_tree_shared<Sm90Core<Types, kHeadDim, true>>(call, stream);
  }
  return launch_tree_shared<Sm90Core<Types, kHeadDim>>(call, stream);
}

template <class Query, class Kv, int kHeadDim>
assay_status TreeLaunch<Query, Kv, kHeadDim>::run(const TreeCall &call, void *stream) {
  ASSAY_RETURN_IF_ERROR((launch_shared_keys<Query, Kv, kHeadDim>(call, stream)));
  return with_split_kv_core<Query, Kv, kHeadDim, true>(call.own, [&](auto core) {
    return launch_tree_own<typename decltype(core)::type>(call, stream);
  });
}

} // namespace assay::ASSAY_TARGET

/// A line of instantiations.def as an explicit instantiation, in assay::ASSAY_TARGET.
#define ASSAY_INSTANTIATE_TREE(query, dtype, kv, kv_dtype, head_dim)                               \
  template struct TreeLaunch<arch::query, arch::kv, head_dim>;
