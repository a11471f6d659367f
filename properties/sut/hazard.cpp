// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/hazard.h"

#include <fmt/format.h>

namespace assay {

std::string text_of(const Violation &v) {
  switch (v.kind) {
  case Violation::Kind::kInput:
  case Violation::Kind::kDeadOutput:
    return fmt::format("{}: {} {} written, the first at byte {} of {}", v.buffer, v.count,
                       v.kind == Violation::Kind::kInput ? "bytes of an input"
                                                         : "bytes outside the live output",
                       v.first, v.size);
  case Violation::Kind::kPastEnd:
    return fmt::format("{}: guard byte {} past its end written", v.buffer, v.first);
  case Violation::Kind::kBeforeStart:
    return fmt::format("{}: guard byte {} before its start written", v.buffer, v.first);
  }
  return v.buffer + ": written";
}

} // namespace assay
