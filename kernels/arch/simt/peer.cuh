// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {
namespace detail {

inline void store_flag(uint32_t *p, uint32_t value, simt::AtomicOrder order, simt::Scope scope,
                       simt::Site site) {
  simt::atomic_access(p, 4, simt::AtomicKind::kStore, order, scope, site);
  *p = value;
}

} // namespace detail

inline void store_release(uint32_t *p, uint32_t value, simt::Site site = simt::Site::here()) {
  detail::store_flag(p, value, simt::AtomicOrder::kRelease, simt::Scope::kSystem, site);
}

// NOTE: nothing here measures time: the wait ends when nobody else can run.
inline bool await_at_least(const uint32_t *p, uint32_t value, uint64_t,
                           simt::Site site = simt::Site::here()) {
  return simt::await_word(p, value, simt::AtomicOrder::kAcquire, simt::Scope::kSystem, site);
}

inline void atomic_or_relaxed(uint32_t *p, uint32_t bits, simt::Site site = simt::Site::here()) {
  simt::atomic_access(p, 4, simt::AtomicKind::kReadModifyWrite, simt::AtomicOrder::kRelaxed,
                      simt::Scope::kSystem, site);
  *p |= bits;
}

} // namespace assay::n_simt::arch
