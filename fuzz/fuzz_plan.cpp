// SPDX-License-Identifier: Apache-2.0
// Plans, of which the first byte says which.
//
// Split plans, balanced and fixed, of up to 24 requests of up to 2^24 keys:
//  - the host planner's plan is sound (kernels/plan/tests/plan_audit.h);
//  - the device planner, on the executor, writes the same bytes.
// Prefix trees of up to 40 requests that begin with pages of one another:
//  - the host's tree is sound, and with a forced number of splits shares all that can be shared
//    (kernels/plan/tests/tree_audit.h);
//  - the device planner, on the executor, writes the same bytes.
#include "fuzz/plan_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_plan)
