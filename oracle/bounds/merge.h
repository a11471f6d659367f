// SPDX-License-Identifier: Apache-2.0
// Reference and budget of merging attention states: exact inputs, fp32 arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/bounds/attention_row.h"

namespace assay::oracle {

struct MergeFacts;

/** The states of one (row, head), decoded exactly; all live. */
struct MergeProblem {
  int head_dim = 0;
  std::vector<float> o;   ///< [states, head_dim]
  std::vector<float> lse; ///< [states], in the declared base
  assay_dtype dtype = ASSAY_FP32;
  assay_lse_base lse_base = ASSAY_LSE_BASE_E;
  assay_arithmetic arithmetic{};

  size_t states() const { return lse.size(); }
};

/** States with lse = -inf are the identity whatever their o holds. */
struct MergeReference {
  RowReference row;
  int only_state = -1;     ///< exactly one live state: the output must be its bits
  std::vector<float> live; ///< [live states, head_dim]: their O, the values of row.joint
};

MergeReference merge_row(const MergeProblem &problem);

/** Throws on a declaration out of its ranges. */
MergeFacts merge_facts(const assay_arithmetic &arithmetic, assay_dtype dtype,
                       assay_lse_base lse_base);

} // namespace assay::oracle
