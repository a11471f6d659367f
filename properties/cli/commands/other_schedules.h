// SPDX-License-Identifier: Apache-2.0
// replay --explore: a case on other schedules of the executor than its own.
#pragma once

#include <optional>
#include <string>

#include "properties/cli/session/session.h"
#include "properties/run/registry.h"
#include "properties/sut/sut.h"

namespace assay {

/// What a case did on schedules that seeds draw, and then on orders of its operations, one after
/// the other, until one failed.
struct OtherSchedules {
  int seeded = 0;        ///< that ran
  uint32_t seed = 0;     ///< of the last of them
  int failed_number = 0; ///< of its kind, from 1, the one that failed; 0: none
  CheckResult failure;   ///< of that one
  /// Nothing where a seeded one failed, or where the kernel runs in a process of its own.
  std::optional<simt::Explored> orders;
  bool failed() const { return failed_number > 0; }
};

/// Tries at most so many of each kind.
OtherSchedules on_other_schedules(const Property &property, const Case &c, Sut &sut, int most);

/// One line: how many schedules ran, whether those are all orders, and which one failed.
std::string in_words(const OtherSchedules &tried);
nlohmann::json to_json(const OtherSchedules &tried);

} // namespace assay
