// SPDX-License-Identifier: Apache-2.0
// Split plans, balanced and fixed, of up to 24 requests of up to 2^24 keys; what a sound plan is,
// is in kernels/plan/plan_audit.h.
#include "fuzz/plan_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_plan)
