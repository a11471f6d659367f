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
  int32_t assay_kernel::*field; ///< null: a bit of capabilities
  assay_capabilities bit;
  /// What the numbers 0, 1, .. are called, the weakest first. "false" and "true" are a yes or no.
  std::span<const char *const> words;
  bool bits = false;  ///< the numbers are sets: one may be neither weaker nor stronger than another
  bool later = false; ///< a worker that does not name it means 0
  /// A capability of paged kernels names the argument that no call has without it, and the feature
  /// of a case that needs it (a word of properties/case/features.cpp). A promise has null.
  const char *argument = nullptr;
  const char *feature = nullptr;

  bool yes_or_no() const { return field == nullptr; }
  int32_t of(const assay_kernel &kernel) const {
    return yes_or_no() ? (kernel.capabilities & bit) != 0 : kernel.*field;
  }
  void set(assay_kernel &kernel, int32_t value) const {
    if (!yes_or_no())
      kernel.*field = value;
    else
      kernel.capabilities = value != 0 ? kernel.capabilities | bit : kernel.capabilities & ~bit;
  }
};

/// In the struct's order.
std::span<const Promise> promises();
/// All bits of capabilities that have a row.
assay_capabilities known_capabilities();

} // namespace assay::oracle
