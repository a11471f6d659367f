// SPDX-License-Identifier: Apache-2.0
// Whole cases of fuzz size (at most 128 keys, head_dim 64) on every kernel of the simt target that
// takes them, through the same codec and property registry as `assay check`:
//   1. within_budget: every O and LSE element inside the certified interval.
//   2. One more property per input, picked by its first byte among those that apply and need at
//      most two runs: poison, run to run, NaN containment, batch, head, page and key order, affine
//      maps, empty states, ... (all of them at once would be 4 inputs a second.)
//   3. The oracle always decides, and the harness never throws.
//   4. No hazard report of the executor: barriers, absent lanes, undefined shared memory, red
//   zones.
#include "fuzz/problem_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_problem)
ASSAY_CASE_MUTATOR(assay::fuzz::problem_format())
