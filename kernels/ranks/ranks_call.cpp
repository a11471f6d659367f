// SPDX-License-Identifier: Apache-2.0
#include "kernels/ranks/ranks_call.h"

#include "kernels/blocks/split_kv_call.h"
#include "kernels/host/checks.h"

#include <algorithm>

namespace assay {

template <assay_exchange_heads kHeads>
assay_status RanksMerge<kHeads>::build(const assay_merge_states_params *p, RanksMergeCall &call) {
  MergeStatesCall merge{};
  ASSAY_RETURN_IF_ERROR(MergeStates::build(p, merge));
  if (p->num_states < 1 || p->num_states > kMaxRanks)
    return fail(ASSAY_UNSUPPORTED, "num_states is {}, there are 1 to {} ranks", p->num_states,
                kMaxRanks);
  if (p->indptr != nullptr)
    return fail(ASSAY_UNSUPPORTED, "indptr is given, and every rank has a state of every row");
  call = {*p, kHeads, merge.empty};
  return ASSAY_OK;
}

template struct RanksMerge<ASSAY_EXCHANGE_SCATTER>;
template struct RanksMerge<ASSAY_EXCHANGE_ALL>;

assay_status RanksPaged::build(const assay_paged_params *p, RanksPagedCall &call) {
  PagedCall paged{};
  PagedSplit split{};
  ASSAY_RETURN_IF_ERROR(build_paged_call(p, paged));
  ASSAY_RETURN_IF_ERROR(build_paged_split(paged.shape, p->num_splits, split));
  if (p->dcp_world_size > 0)
    return fail(ASSAY_UNSUPPORTED, "num_ranks is {}, and the cache is cut here", p->dcp_world_size);
  // The number of ranks must not depend on other requests of the batch.
  const int64_t page = p->kv.page_size, sizes = page + p->num_kv_heads + p->num_splits;
  const int64_t num_ranks = 2 + sizes % 2, most = (1 << 30) / num_ranks;
  const int64_t interleaves[] = {page, 1, 5, 2 * page};
  call = {*p, static_cast<int>(num_ranks),
          static_cast<int32_t>(std::min(interleaves[sizes / 2 % 4], most)),
          static_cast<int>(sizes % num_ranks), paged.empty};
  return ASSAY_OK;
}

} // namespace assay
