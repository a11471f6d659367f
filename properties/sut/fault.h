// SPDX-License-Identifier: Apache-2.0
// Where a kernel's process touched memory that it must not: the buffer of the call nearest to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay {

/// In memory that both processes see.
struct FaultNote {
  static constexpr size_t kName = 48;

  bool taken = false;
  uint64_t address = 0;
  char buffer[kName] = {}; ///< empty: the call had none
  uint64_t size = 0;       ///< size of the buffer
  int64_t distance = 0;    ///< below 0: so far in front of it; from 0 on: behind its last byte
  bool inside = false;
};

/// " at ...", for people; empty where nothing was noted.
std::string text_of(const FaultNote &note);

/// In a kernel's process: SIGSEGV and SIGBUS fill `note` and kill the process as they would have.
void note_faults(FaultNote *note);
/// The buffers of the call that follows, after those of the last one are forgotten. Nothing where
/// no faults are noted.
void forget_buffers_near_faults();
void note_buffer_near_faults(const void *data, size_t bytes, const std::string &name);

} // namespace assay
