// SPDX-License-Identifier: Apache-2.0
// A fuzz target is one function from bytes to what is wrong with them. Under libFuzzer or the
// replay main it stops the process on the first violation; tests call it directly.
#pragma once

#ifdef NDEBUG
#error "fuzz targets rely on assert(): build without NDEBUG"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "fuzz/crash_guard.h"

namespace assay::fuzz {

using Input = std::span<const uint8_t>;

inline int stop_on(const std::string &violation) {
  if (violation.empty()) return 0;
  std::fprintf(stderr, "VIOLATION: %s\n", violation.c_str());
  std::abort();
}

} // namespace assay::fuzz

/// Defines the entry point; `check(Input)` returns an empty string when everything holds.
#define ASSAY_FUZZ_TARGET(check)                                                                   \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {                        \
    assay::fuzz::guard_crashes(data, size);                                                        \
    return assay::fuzz::stop_on(check(assay::fuzz::Input(data, size)));                            \
  }
