// SPDX-License-Identifier: Apache-2.0
#include "properties/case/ledger.h"

#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "properties/case/case_text.h"

namespace assay {
namespace {

constexpr std::string_view kUntil = "quarantined until ";

/// A day of the calendar as YYYY-MM-DD: text compares as days do.
bool is_day(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto number = [&](size_t from, size_t count) {
    int value = -1;
    const char *end = text.data() + from + count;
    const auto [at, ec] = std::from_chars(text.data() + from, end, value);
    return ec == std::errc() && at == end ? value : -1;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (year < 0 || month < 0 || day < 0) return false;
  return std::chrono::year_month_day(std::chrono::year(year),
                                     std::chrono::month(static_cast<unsigned>(month)),
                                     std::chrono::day(static_cast<unsigned>(day)))
      .ok();
}

} // namespace

CaseStatus LedgerEntry::on(std::string_view today) const {
  return status == CaseStatus::kQuarantined && today > until ? CaseStatus::kOpen : status;
}

std::string parse_status(std::string_view text, LedgerEntry &out) {
  if (text == "fixed" || text == "open") {
    out.status = text == "open" ? CaseStatus::kOpen : CaseStatus::kFixed;
    out.until.clear();
    return "";
  }
  if (!text.starts_with(kUntil))
    return quoted_word(text) + " is not fixed, open or quarantined until YYYY-MM-DD";
  const std::string_view day = text.substr(kUntil.size());
  if (!is_day(day)) return quoted_word(day) + " is no day as YYYY-MM-DD";
  out.status = CaseStatus::kQuarantined;
  out.until = day;
  return "";
}

std::string format_status(const LedgerEntry &entry) {
  switch (entry.status) {
  case CaseStatus::kFixed:
    return "fixed";
  case CaseStatus::kOpen:
    return "open";
  case CaseStatus::kQuarantined:
    return std::string(kUntil) + entry.until;
  }
  return "";
}

std::string today() {
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day day(now);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

} // namespace assay
