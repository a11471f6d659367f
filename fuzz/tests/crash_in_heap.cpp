// SPDX-License-Identifier: Apache-2.0
// A fuzz target whose code under test writes past the end of its memory, over what the allocator
// keeps there, and then allocates; or, with inputs that begin with 'a', that only stops.
#include <cstring>

#include "fuzz/crash_guard.h"
#include "fuzz/target.h"

namespace {

/// Opaque, so that no compiler sees the mistake.
void *(*volatile allocate)(size_t) = std::malloc;
void (*volatile release)(void *) = std::free;

std::string stop_or_corrupt(assay::fuzz::Input input) {
  if (input.empty()) return "";
  if (input[0] == 'a') return "found by the check";
#ifndef ASSAY_UNGUARDED
  assay::fuzz::guard_crashes(input.data(), input.size(), 2); // it hangs, however long one waits
#endif
  char *memory = static_cast<char *>(allocate(24));
  std::memset(memory, 0xff, 4096);
  for (size_t size = 32; size < 1 << 20; size *= 2)
    release(allocate(size));
  return "";
}

} // namespace

#ifdef ASSAY_UNGUARDED
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return assay::fuzz::stop_on(stop_or_corrupt(assay::fuzz::Input(data, size)));
}
#else
ASSAY_FUZZ_TARGET(stop_or_corrupt)
#endif
