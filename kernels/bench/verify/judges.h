// SPDX-License-Identifier: Apache-2.0
// Who judges sampled rows, by family.
#pragma once

#include "kernels/bench/verify/verify_cascade.h"
#include "kernels/bench/verify/verify_merge.h"
#include "kernels/bench/verify/verify_paged.h"

namespace assay::bench {

/// All of them, or none.
struct Judges {
  PagedJudge paged;
  CascadeJudge cascade;
  MergeJudge merge;

  explicit operator bool() const { return bool(paged); }
};

} // namespace assay::bench
