// SPDX-License-Identifier: Apache-2.0
// Split plans, balanced and fixed, of up to 24 requests of up to 2^24 keys:
//   1. Every key of every (request, unit) is computed exactly once, inside the request.
//   2. Every request is written, also without keys; its splits are 0, 1, ... and know their number.
//   3. Every partial slot lies in the workspace and is written by one item only; all splits of a
//      request agree where its slots are.
//   4. Balanced plans: no worker holds more tiles than ceil((tiles + boundaries) / workers), or with
//      whole workers two more than ceil(tiles / workers).
//   5. Counters start at 0.
#include "fuzz/plan_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_plan)
