// SPDX-License-Identifier: Apache-2.0
// What a merge must give (assertions: fuzz_merge.cpp).
#pragma once

#include <string>

#include "fuzz/paths/merge_program.h"
#include "fuzz/paths/merge_run.h"

namespace assay::fuzz {

/// The first thing wrong with the result, or an empty string.
std::string merge_violation(const MergeProgram &program, const MergeResult &result);

/// Decodes, runs and judges.
std::string check_merge(Input input);

} // namespace assay::fuzz
