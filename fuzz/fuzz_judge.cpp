// SPDX-License-Identifier: Apache-2.0
// Arrays that somebody hands to assay_judge.h: shapes, strides, tables, lengths, types and scalars
// from bytes. Each array has exactly the memory that its shape and strides name.
//   1. The judge reads nothing else (the sanitizers watch), and ends.
//   2. It refuses them in printable words on one line, or fills a report.
//   3. A report adds up: no more judged than is there, a verdict that is one, the same from two
//      threads.
#include "fuzz/judge_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_judge)
