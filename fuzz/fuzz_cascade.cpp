// SPDX-License-Identifier: Apache-2.0
// Whole small cascades, trees of up to three levels, on cascade attention: as fuzz_paged.
#include "fuzz/cases/case_judge.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_cascade)
ASSAY_CASE_MUTATOR(assay::fuzz::cascade_format())
