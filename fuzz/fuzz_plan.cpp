// SPDX-License-Identifier: Apache-2.0
// Split plans, balanced and fixed, of up to 24 requests of up to 2^24 keys:
//  - the host planner's plan is sound (kernels/plan/plan_audit.h);
//  - the device planner, on the executor, writes the same bytes.
#include "fuzz/plan_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_plan)
