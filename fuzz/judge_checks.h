// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/target.h"
#include "kernels/abi/assay_judge.h"

namespace assay::fuzz {

/// The functions under test; the positive controls replace one at a time.
struct JudgeUnderTest {
  assay_status (*attention)(const assay_judge_attention_params *,
                            assay_judge_report *) = assay_judge_attention;
  const char *(*last_error)() = assay_judge_last_error;
};

std::string check_judge_with(const JudgeUnderTest &judge, Input input);
inline std::string check_judge(Input input) { return check_judge_with({}, input); }

} // namespace assay::fuzz
