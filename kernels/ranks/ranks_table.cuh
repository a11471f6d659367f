// SPDX-License-Identifier: Apache-2.0
// What runs the calls of ranks_call.h: on the executor, which has several devices.
#pragma once

#include "kernels/host/fail.h"
#include "kernels/host/find.h"
#include "kernels/ranks/ranks_call.h"

#if ASSAY_IS_CUDA

namespace assay::n_cuda {

template <class Call>
assay_status find_ranks(const Call &, Launch<Call> &) {
  return fail(ASSAY_UNSUPPORTED, "ranks run side by side on the executor only");
}

} // namespace assay::n_cuda

#else

#include "kernels/ranks/merge_on_ranks.cuh"
#include "kernels/ranks/paged_on_ranks.cuh"

namespace assay::ASSAY_TARGET {

inline assay_status find_ranks(const RanksMergeCall &, Launch<RanksMergeCall> &launch) {
  launch = &launch_ranks_merge;
  return ASSAY_OK;
}
inline assay_status find_ranks(const RanksPagedCall &call, Launch<RanksPagedCall> &launch) {
  SplitKvCall v2{};
  Launch<SplitKvCall> attend = nullptr;
  ASSAY_RETURN_IF_ERROR(build_paged_call(&call.params, v2.paged));
  ASSAY_RETURN_IF_ERROR(build_paged_split(v2.paged.shape, call.params.num_splits, v2.split));
  ASSAY_RETURN_IF_ERROR(find_paged_attention_v2(v2, attend));
  launch = &launch_ranks_paged;
  return ASSAY_OK;
}

} // namespace assay::ASSAY_TARGET

#endif

namespace assay::ASSAY_TARGET {

inline assay_status find_exchange_scatter(const RanksMergeCall &call,
                                          Launch<RanksMergeCall> &launch) {
  return find_ranks(call, launch);
}
inline assay_status find_exchange_all(const RanksMergeCall &call, Launch<RanksMergeCall> &launch) {
  return find_ranks(call, launch);
}
inline assay_status find_sharded_attention(const RanksPagedCall &call,
                                           Launch<RanksPagedCall> &launch) {
  return find_ranks(call, launch);
}

} // namespace assay::ASSAY_TARGET
