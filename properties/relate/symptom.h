// SPDX-License-Identifier: Apache-2.0
// How a case fails, as data beside the words of its message.
#pragma once

#include <limits>
#include <string>

namespace assay {

struct Symptom {
  enum class Kind {
    kNone,      ///< nothing fails, or nobody said how
    kOutside,   ///< a number farther from another one than is allowed
    kNotFinite, ///< NaN or infinity where a number is expected
    kNanLost,   ///< a number where NaN must arrive
    kBits,      ///< bits that a second run does not give
    kNotExact,  ///< not the one value, or the two, that are right
    kNotEmpty,  ///< a row without keys that is not empty
    kHazard,    ///< the executor stopped the kernel
    kMemory,    ///< bytes changed that must not
    kRefused,   ///< a status that is no success, for a valid call
    kCrash,     ///< the kernel's process ended or hangs
    kDeclared   ///< what the kernel says of itself is wrong
  };
  static constexpr int kLse = -1, kNowhere = -2;

  Kind kind = Kind::kNone;
  int row = 0, head = 0;
  int dim = kNowhere; ///< kLse: of the LSE; kNowhere: no single element
  double got = kUnknown, expected = kUnknown;
  double allowed = kUnknown; ///< distance of a right kernel at most, in the element's units
  /// Of a hazard "kind at file:line", of memory the buffer and what was written, of the others
  /// without an element their message with every number as #.
  std::string where;
  /// The kernel's own line, as far as a hazard names one.
  std::string file;
  int line = 0;

  bool of_element() const { return dim != kNowhere; }
  /// |got - expected| over what is allowed; NaN where that is unknown.
  double excess() const;

  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
};

const char *name_of(Symptom::Kind kind);

/// An element that is not what it must be: kNotFinite when `got` is not and `expected` is.
Symptom wrong_value(int row, int head, int dim, double got, double expected, double allowed);

/// Of an element whose numbers do not matter, or are none.
Symptom wrong_element(Symptom::Kind kind, int row, int head, int dim);

/// From a line of the executor ("file:line: kind: text") or of a kernel's process.
Symptom hazard_symptom(const std::string &line);

/// Without an element, and with `line` as the only trace.
Symptom plain_symptom(Symptom::Kind kind, const std::string &line);

} // namespace assay
