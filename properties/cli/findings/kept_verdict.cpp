// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings/kept_verdict.h"

#include <algorithm>

#include <fmt/format.h>

#include "properties/cli/session/session.h"

namespace assay {

KeptVerdict judge_kept(const LedgerEntry &entry, const std::vector<CheckResult::Kind> &results,
                       const std::string &today) {
  using Kind = CheckResult::Kind;
  const auto count = [&](Kind kind) {
    return static_cast<int>(std::count(results.begin(), results.end(), kind));
  };
  KeptVerdict out;
  out.status = entry.on(today);
  if (out.status == CaseStatus::kQuarantined) return out;
  const int failures = count(Kind::kFail);
  if (out.status == CaseStatus::kOpen && failures > 0) return out;
  out.undecided = count(Kind::kUndecided);
  out.unexpected_pass =
      out.status == CaseStatus::kOpen && out.undecided == 0 && count(Kind::kPass) > 0;
  out.findings = out.unexpected_pass ? 1 : failures;
  return out;
}

std::string kept_word(CaseStatus status, CheckResult::Kind kind) {
  if (status == CaseStatus::kQuarantined) return "held";
  if (status == CaseStatus::kOpen && kind == CheckResult::Kind::kFail) return "open";
  return verdict_word(kind);
}

std::string unexpected_pass_text(const std::string &path, const LedgerEntry &entry) {
  return fmt::format("{}: its status is '{}', but it passes: set 'status = fixed'{}", path,
                     format_status(entry),
                     entry.issue.empty() ? "" : fmt::format(" (issue {})", entry.issue));
}

} // namespace assay
