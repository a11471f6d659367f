// SPDX-License-Identifier: Apache-2.0
// Plain C++ kernels behind the plugin table: a correct one per family, and the same with one defect
// switched on, so that each invariant is shown a kernel it must reject.
#pragma once

#include "kernels/abi/plugin.h"
#include "properties/case/problem.h"

namespace assay::reference {

enum class Bug {
  kNone,
  kMissingRescale,     ///< O and the row sum keep their scale when the maximum grows
  kLateMask,           ///< the tail of the last page enters with weight 0
  kStrayWrite,         ///< writes one element past the live part of a row
  kReadsWorkspace,     ///< accumulates into dirty scratch
  kCallCounter,        ///< result depends on how often it was called
  kScheduleDependent,  ///< result depends on the executor's order
  kNanLeak,            ///< adds 0 times another row's data
  kNanScoresDropped,   ///< NaN scores count as -inf
  kNanValuesDropped,   ///< NaN values count as 0
  kBatchOrder,         ///< visits keys in another order when the batch is larger than one
  kFixedKvHead,        ///< always reads kv head 0
  kRowSumDropsKey,     ///< the first key is missing from the row sum
  kClampedV,           ///< negative values become 0
  kMaxFromZero,        ///< the running maximum starts at 0
  kAscendingPages,     ///< skips pages whose id is below the previous one's
  kSkipsRepeatedPages, ///< skips a page it saw in this row or in row 0
  kDropsLastSlot,      ///< never reads the last slot of pages with more than one
  kHeadRemainder,      ///< kv head = query head % kv heads
  kLseWithoutSum,      ///< LSE is the maximum
  kNoMax,              ///< exponentials of raw scores
  kDropsLastKey,
  kUnweightedSplits, ///< averages splits without their weights
  kEmptySplitCounts, ///< an empty split gets weight 1
  kPrefixTwice,      ///< level 0 is attended twice when there are several levels
  kNoInfGuard,       ///< an empty state contributes 0 * o
  kMaxOfFirst,       ///< the first state's LSE serves as the maximum
  kMeanLse,          ///< merged LSE is the mean
  kFirstTwice,       ///< the first state has double weight
  kShortLog2e,       ///< log2 e is 1.4427: off by 3e-6, which no bound of bf16 values sees
  kTinyNormaliser,   ///< field only: the row sum is off by one unit
  kLseInBase2,       ///< field only: LSE leaves in base 2 whatever was asked
  kNoSoftcap,
  kAlibiOffByOne,    ///< distances count from the next position
  kWindowOffByOne,   ///< one key more than the window holds
  kWindowLateMask,   ///< keys before the window enter with weight 0
  kNotCausal,        ///< every query token sees all live keys
  kRaggedAsFull,     ///< positions count from q_len, not from what the request has
  kRaggedAtFirst,    ///< every request of a ragged call lies where the first does
  kListOfHeadZero,   ///< every kv head has the first one's page list
  kShardByIndex,     ///< keys of a shard stand at their index
  kShardLocalLength, ///< a request is as long as what its shard holds
  kSinkPerSplit,     ///< the sink counts once in every split
  kSinkIgnored,
  kScaleOfHeadZero, ///< every kv head takes the scales of head 0
  kNanIs480,        ///< e4m3 NaN is read as the next number
  kQueriesTooEarly, ///< started early, it finds zeros for the queries
  kWritesEarly,     ///< clears the output before reading the inputs
};

/// The defect of every kernel below on this thread; kNone unless a test sets it.
extern thread_local Bug bug;

class WithBug {
public:
  explicit WithBug(Bug b) { bug = b; }
  ~WithBug() { bug = Bug::kNone; }
};

/// paged (one partition), paged (splits, with workspace), cascade, merge_state, merge_states.
const assay_kernel &kernel(const char *name);
const assay_plugin &plugin();

} // namespace assay::reference
