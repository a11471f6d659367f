// SPDX-License-Identifier: Apache-2.0
// Where a kept finding stands, and so how its replay must come out.
#pragma once

#include <string>
#include <string_view>

namespace assay {

enum class CaseStatus {
  kFixed,      ///< must pass
  kOpen,       ///< must still fail
  kQuarantined ///< counts for nothing until its day is over; then it is open
};

struct LedgerEntry {
  CaseStatus status = CaseStatus::kFixed;
  std::string until; ///< of a quarantined one: its last day, "2026-12-31"
  std::string issue; ///< words or an address for the reader; may be empty
  friend bool operator==(const LedgerEntry &, const LedgerEntry &) = default;

  /// What counts on the day `today` (YYYY-MM-DD): a quarantine that has ended is open.
  CaseStatus on(std::string_view today) const;
};

/// "fixed", "open" or "quarantined until YYYY-MM-DD" into status and day; otherwise what is wrong
/// with the text, and `out` as it was.
std::string parse_status(std::string_view text, LedgerEntry &out);
std::string format_status(const LedgerEntry &entry);

/// The day by the clock, in UTC: "2026-12-31".
std::string today();

} // namespace assay
