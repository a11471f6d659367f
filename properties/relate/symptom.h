// SPDX-License-Identifier: Apache-2.0
// How a case fails, as data beside the words of its message.
#pragma once

#include <limits>
#include <string>

#include "oracle/exact/tile_order.h"
#include "properties/relate/origin.h"
#include "properties/sut/hazard.h"
#include "properties/sut/wrong_answer.h"

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
  static constexpr int kLse = -1, kRow = -2, kNowhere = -3;

  Kind kind = Kind::kNone;
  int row = 0, head = 0;
  int dim = kNowhere; ///< kLse: of the LSE; kRow: of O of a whole row; kNowhere: none of these
  double got = kUnknown, expected = kUnknown;
  double allowed = kUnknown; ///< distance of a right kernel at most, in the element's units
  /// Where the value of an element comes from, as far as somebody has found it out.
  Origin origin = Origin::kComputed;
  /// Without an element, what tells it from others of its kind: "kind at file:line" of a hazard,
  /// the buffer and what was written of memory. Part of causes and fingerprints, and made from
  /// data: its words are no message's, and stay what they are.
  std::string where;
  bool hung = false; ///< the kernel did not return in time: asking again costs as much
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

/// The symptom of an element whose numbers do not matter, or are none.
Symptom wrong_element(Symptom::Kind kind, int row, int head, int dim);

Symptom symptom_of(const Hazard &hazard);
Symptom symptom_of(const Violation &violation);
/// Kinds of answers that a kernel gives about its own calls.
Symptom symptom_of(const WrongAnswer &answer);
Symptom symptom_of(const oracle::OrderError &error);

/// Without an element, and told from others by `where` alone.
Symptom plain_symptom(Symptom::Kind kind, const std::string &where);

/// Every number as #: a kernel's own words are then the same in cases of other sizes.
std::string without_numbers(const std::string &words);

} // namespace assay
