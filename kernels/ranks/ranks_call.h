// SPDX-License-Identifier: Apache-2.0
// Several ranks as one kernel of a family that the harness knows. A case of merge_states whose rows
// have n states is an exchange of n ranks; one of paged attention is decode over a cache that is
// cut into n shards, and an exchange. So every check of those families is one of the exchange, and
// the judge need not know of ranks.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/decode/v2_call.h"
#include "kernels/exchange/exchange_call.h"
#include "kernels/host/arithmetic.h"
#include "kernels/merge/merge_call.h"

namespace assay {

struct RanksMergeCall {
  assay_merge_states_params params;
  assay_exchange_heads heads;
  bool empty;
};

/// merge_states with a rank a state: 1 to 8, the same number for all rows. Every rank makes three
/// exchanges on the same windows, the last of them with the states of the case.
template <assay_exchange_heads kHeads>
struct RanksMerge {
  using Params = assay_merge_states_params;
  using Call = RanksMergeCall;
  static constexpr assay_family kFamily = ASSAY_FAMILY_MERGE_STATES;
  static constexpr assay_arithmetic kArithmetic = merge_arithmetic();
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_ALWAYS;
  static assay_status build(const Params *params, Call &call);
};

struct RanksPagedCall {
  assay_paged_params params;
  int num_ranks;
  int32_t interleave; // tokens in turn on a rank
  int sink_rank;      // whose state has the sinks
  bool empty;
};

/// Paged attention with the tokens of a request dealt to ranks in turns, one by one, by pages or
/// otherwise: paged_attention_v2 on each rank's tokens, then an exchange in which every rank keeps
/// some heads.
struct RanksPaged {
  using Params = assay_paged_params;
  using Call = RanksPagedCall;
  static constexpr assay_family kFamily = ASSAY_FAMILY_PAGED;
  /// The arithmetic of v2 with one more merge, of partials in the dtype of the call.
  static constexpr assay_arithmetic kArithmetic = [] {
    assay_arithmetic a = PagedV2::kArithmetic;
    a.merge_stages = 2;
    a.partial_format = ASSAY_FORMAT_CALL;
    a.stored_merges = 2;
    a.exponential = ASSAY_EXP_NATURAL; // LSEs leave a rank in the base of the call
    return a;
  }();
  static constexpr assay_batch_invariance kBatchInvariance = ASSAY_BATCH_FIXED;
  static assay_status build(const Params *params, Call &call);
};

} // namespace assay
