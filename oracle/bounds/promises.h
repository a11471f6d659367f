// SPDX-License-Identifier: Apache-2.0
// What a kernel promises beside its arithmetic, and what it can take, once. Whoever reads, writes
// or checks a kernel's table goes through these rows, so a new one is a field of plugin.h and a row
// here; a capability also names the feature of a case that needs it.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/abi/plugin.h"

namespace assay::oracle {

struct Promise {
  const char *name;
  int32_t assay_kernel::*field;
  /// What the numbers 0, 1, .. are called, the weakest first. "false" and "true" are a yes or no.
  std::span<const char *const> words;
  bool bits = false;  ///< the numbers are sets: one may be neither weaker nor stronger than another
  bool later = false; ///< a worker that does not name it means 0
  /// A capability of paged kernels names the argument that no call has without it, and the feature
  /// of a case that needs it (a word of properties/case/features.cpp). A promise has null.
  const char *argument = nullptr;
  const char *feature = nullptr;

  bool yes_or_no() const { return words[0][0] == 'f'; }
};

/** In the struct's order. */
std::span<const Promise> promises();

} // namespace assay::oracle
