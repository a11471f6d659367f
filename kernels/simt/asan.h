// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// ASSAY_ASAN: 1 when this translation unit is compiled under AddressSanitizer.
#if defined(__SANITIZE_ADDRESS__)
#define ASSAY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_ASAN 1
#endif
#endif
#ifndef ASSAY_ASAN
#define ASSAY_ASAN 0
#endif

#if ASSAY_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace assay::simt {

inline void asan_poison([[maybe_unused]] const void *p, [[maybe_unused]] size_t bytes) {
#if ASSAY_ASAN
  __asan_poison_memory_region(p, bytes);
#endif
}

inline void asan_unpoison([[maybe_unused]] const void *p, [[maybe_unused]] size_t bytes) {
#if ASSAY_ASAN
  __asan_unpoison_memory_region(p, bytes);
#endif
}

} // namespace assay::simt
