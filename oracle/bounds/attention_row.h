// SPDX-License-Identifier: Apache-2.0
// The exact value of every output of one row, as a rigorous enclosure, and how far from it a
// correct kernel with the declared arithmetic may be. Statements and proofs: oracle/BOUNDS.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/bounds/joint.h"
#include "oracle/bounds/row_numbers.h"
#include "oracle/exact/dtype.h"
#include "oracle/exact/row_input.h"
#include "oracle/exact/tile_order.h"

namespace assay::oracle {

/** One row: everything its bounds depend on. Views; the owner outlives the call. */
struct RowProblem {
  std::span<const float> q;
  const KeySet *keys = nullptr;
  assay_dtype dtype = ASSAY_BF16; ///< type of q
  assay_dtype o_dtype = -1;       ///< type of the output; -1: as q
  float sm_scale = 1.0f;
  assay_lse_base lse_base = ASSAY_LSE_BASE_E;
  RowFeatures features; ///< `keys` holds the sink exactly when features.has_sink()
  assay_arithmetic arithmetic{};
  /// A partition of `keys` (require_partition); null: any order, any cut into at most max_splits
  /// ranges.
  const TileOrder *order = nullptr;
  int max_splits = 1; ///< ignored with an order
  int span = 0; ///< keys from the first to the last with hidden ones between; 0: none are hidden
  bool replay_scores = false; ///< T2 too: the declared block-FMA is bit-accurate (block_fma.h)
  int combine_stages = 1;     ///< merges through fp32 (O, LSE) partials; 0 for one-pass kernels.
                              ///< The merge with a sink comes on top.

  assay_dtype output() const { return o_dtype < 0 ? dtype : o_dtype; }
  assay_dtype operand() const {
    return operand_dtype(dtype, features.fp8 || rounds_kv(), arithmetic.kv_format);
  }
  /** K and V are rounded behind their scales, or from fp32. */
  bool rounds_kv() const {
    const assay_format format = arithmetic.kv_format;
    const bool wide = dtype == ASSAY_FP32 && format != ASSAY_FORMAT_CALL;
    const bool scaled = features.fp8 || features.scale_blocks > 0;
    return (scaled || wide) && !is_fp8(dtype) && format != ASSAY_FORMAT_FP32;
  }
};

/** Position of key j of a row less the row's own. */
inline double key_distance(const RowProblem &problem, size_t j) {
  const RowFeatures &f = problem.features;
  const auto last = static_cast<int64_t>(problem.keys->visible()) - 1;
  return static_cast<double>(f.shard.position(f.first_key + static_cast<int64_t>(j)) -
                             f.shard.position(f.first_key + last) + f.behind);
}

/**
 * A replay's reference and budget. Absent (`applies()` false) when it was not asked for, P is not
 * rounded, or the scores are known too badly to replay anything. Its enclosures are of the
 * *replayed* value o', so both tiers and T0 hold at once for a correct kernel.
 */
struct ReplayedRow {
  std::vector<Enclosure> o;
  std::vector<BudgetTerms> budget;
  double ambiguous_fraction = 0.0; ///< share of keys whose rounded P the replay cannot tell
  Enclosure lse;                   ///< T2 only
  double lse_budget = 0.0;

  bool applies() const { return !o.empty(); }
};

struct RowReference {
  std::vector<Enclosure> o;
  std::vector<BudgetTerms> t0; ///< one per dimension
  Enclosure lse;               ///< in the declared base
  double lse_budget = 0.0;
  bool empty = false;  ///< no visible key: O is exactly 0
  bool sunken = false; ///< empty but for a sink: LSE is the sink's logit; without: exactly -inf
  bool finite_inputs = true;
  bool claim = true; ///< false: non-finite inputs or the fp32 range may be left
  std::string no_claim_reason;

  JointRow joint; ///< T0 of the row as one; absent where t1 applies, which is sharper

  ReplayedRow t1; ///< rounding replay; needs a tile order
  ReplayedRow t2; ///< bit replay; on request, needs block-FMA scores
};

RowReference attention_row(const RowProblem &problem);

} // namespace assay::oracle
