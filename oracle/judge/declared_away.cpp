// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/declared_away.h"

#include <algorithm>
#include <cmath>

namespace assay::oracle {

uint64_t declared_away(const RowProblem &problem, const float *lse, uint64_t no_claim) {
  if (no_claim == 0) return 0;
  RowProblem faultless = problem;
  faultless.arithmetic = {};
  faultless.arithmetic.exponential = ASSAY_EXP_BASE2;
  faultless.arithmetic.tile_tokens = 1 << 30;
  faultless.order = nullptr;
  // Partials and outputs in the format of the call have its range: what does not fit there are the
  // inputs.
  if (problem.arithmetic.partial_format == ASSAY_FORMAT_CALL) {
    faultless.arithmetic.partial_format = ASSAY_FORMAT_CALL;
    faultless.arithmetic.stored_merges = problem.arithmetic.stored_merges;
    faultless.arithmetic.merge_stages = problem.arithmetic.merge_stages;
    faultless.arithmetic.max_splits = problem.arithmetic.max_splits;
  }
  if (problem.arithmetic.output_format == ASSAY_FORMAT_CALL)
    faultless.arithmetic.output_format = ASSAY_FORMAT_CALL;
  const RowReference row = attention_row(faultless);
  if (!row.claim) return 0;
  uint64_t impossible = lse != nullptr && std::isinf(row.lse_budget) ? 1 : 0;
  for (const BudgetTerms &t : row.t0)
    impossible += t.overflow_possible || std::isinf(t.total) ? 1 : 0;
  return no_claim - std::min(no_claim, impossible);
}

} // namespace assay::oracle
