// SPDX-License-Identifier: Apache-2.0
// Whole small paged cases on one kernel of the simt target, which the first byte picks: v1, v2 or
// tree attention; mutated and crossed field by field. Small enough to explore: fuzz_problem runs
// every property, and T2.
//   1. within_budget: every element of O by T0 and T1, every LSE.
//   2. No hazard of the executor, no byte written beside the outputs.
//   3. The oracle decides, and the harness never throws.
#include "fuzz/cases/case_judge.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_paged)
ASSAY_CASE_MUTATOR(assay::fuzz::paged_format())
