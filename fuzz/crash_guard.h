// SPDX-License-Identifier: Apache-2.0
// libFuzzer reports a crash with code that allocates. Where the kernel under test has corrupted the
// heap that code never ends: the allocator waits for a lock that the crash holds, or crashes again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::fuzz {

/// Bounds the report of whatever crashes from here on: where libFuzzer's own has not ended the
/// process after `seconds`, far more than it takes on a busy machine, or crashes itself, the input
/// is written without the heap and the process ends with libFuzzer's exit code of a crash. `data`
/// is to stay until the next call. Nothing is done under a sanitizer, whose allocator notices
/// first, and without libFuzzer.
void guard_crashes(const uint8_t *data, size_t size, int seconds = 120);

} // namespace assay::fuzz
