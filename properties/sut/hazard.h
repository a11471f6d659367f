// SPDX-License-Identifier: Apache-2.0
// What was wrong in a run, as data. The texts are for people: nothing reads them, and other words
// change no cause, no group and no fingerprint.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

/// What ended a run, or should have.
struct Hazard {
  enum class Kind : uint8_t {
    kExecutor, ///< the executor stopped the kernel
    kUnsaid,   ///< the kernel's status says so, and no report does
    kDevice,   ///< the device stopped
    kThrown,   ///< the kernel threw
    kRaised,   ///< a kernel of a worker did
    kExited,   ///< the kernel ended its process
    kSignal,   ///< its process died
    kGone,     ///< its process is no more, and did not say how
    kHung,     ///< it has not returned in time
    kChannel,  ///< it closed or corrupted the channel of its process
    kNoReply   ///< its process, or the worker, sent no sound reply
  };
  static constexpr Kind kLast = Kind::kNoReply;

  Kind kind = Kind::kUnsaid;
  /// The name of the executor's kind of hazard or of the device's error; for kThrown, kRaised and
  /// kUnsaid the kernel's own words.
  std::string name = {};
  std::string file = {}; ///< the kernel's own line, where one is known
  int line = 0;
  std::string buffer = {}; ///< whose guard bytes changed
  int signal = 0;
  std::string text = {}; ///< for people; more lines may follow the first
};

/// Memory that changed although a call must not write it.
struct Violation {
  enum class Kind : uint8_t {
    kInput,      ///< bytes of an input
    kDeadOutput, ///< bytes of an output that the call must not write
    kPastEnd,    ///< a guard byte behind the buffer
    kBeforeStart ///< one in front of it
  };
  static constexpr Kind kLast = Kind::kBeforeStart;

  Kind kind = Kind::kInput;
  std::string buffer = {};
  uint64_t first = 0; ///< byte of the buffer; of guard bytes how far from it
  uint64_t count = 0; ///< bytes that changed
  uint64_t size = 0;  ///< size of the buffer
};

/// One line for people.
std::string text_of(const Violation &violation);

} // namespace assay
