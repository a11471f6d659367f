// SPDX-License-Identifier: Apache-2.0
// What the replay of a kept case comes to, by where it stands in the ledger.
#pragma once

#include <string>
#include <vector>

#include "properties/case/ledger.h"
#include "properties/relate/check_result.h"

namespace assay {

struct KeptVerdict {
  CaseStatus status = CaseStatus::kFixed; ///< that counts today
  int findings = 0;             ///< failures of a fixed case; 1 for an open one that passes
  int undecided = 0;            ///< of a fixed case, or of an open one that nothing fails
  bool unexpected_pass = false; ///< open, and no property fails any more
};

/// The verdict of all properties and kernels that ran on the case. An open case holds when one of
/// them fails.
KeptVerdict judge_kept(const LedgerEntry &entry, const std::vector<CheckResult::Kind> &results,
                       const std::string &today);

/// The word for one result: "pass", "FAIL", "open", "held" (quarantined) and so on.
std::string kept_word(CaseStatus status, CheckResult::Kind kind);

/// The line for an open case that passes.
std::string unexpected_pass_text(const std::string &path, const LedgerEntry &entry);

} // namespace assay
