// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/arch/simt/shared_storage.cuh"
#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

template <class T>
inline T global_load(const T *p, simt::Site site = simt::Site::here()) {
  static_assert(detail::kIsWord<T>);
  simt::access(simt::Space::kGlobal, simt::AccessKind::kRead, p, sizeof(T), sizeof(T), site);
  return detail::read_bytes(p);
}
template <class T>
inline T global_load_streaming(const T *p, simt::Site site = simt::Site::here()) {
  return global_load(p, site);
}
template <class T>
inline T global_load_readonly(const T *p, simt::Site site = simt::Site::here()) {
  return global_load(p, site);
}

inline void await_loaded(uint32_t) {}

template <class T>
inline const T *kept_global(const T *p) {
  return p;
}

template <class T>
inline void global_store(T *p, std::type_identity_t<T> value,
                         simt::Site site = simt::Site::here()) {
  static_assert(detail::kIsWord<T>);
  simt::access(simt::Space::kGlobal, simt::AccessKind::kWrite, p, sizeof(T), sizeof(T), site);
  std::memcpy(p, &value, sizeof(T));
}

// Plain read-modify-write is atomic here: blocks run one after the other, and fibers switch only
// inside the executor.
namespace detail {

inline uint32_t atomic_inc(uint32_t *p, uint32_t limit, simt::AtomicOrder order, simt::Scope scope,
                           simt::Site site) {
  simt::atomic_access(p, 4, simt::AtomicKind::kReadModifyWrite, order, scope, site);
  const uint32_t old = *p;
  *p = old >= limit ? 0 : old + 1;
  return old;
}

} // namespace detail

inline uint32_t atomic_inc_acq_rel(uint32_t *p, uint32_t limit,
                                   simt::Site site = simt::Site::here()) {
  return detail::atomic_inc(p, limit, simt::AtomicOrder::kAcqRel, simt::Scope::kGpu, site);
}
inline uint32_t atomic_add_acq_rel(uint32_t *p, uint32_t value,
                                   simt::Site site = simt::Site::here()) {
  simt::atomic_access(p, 4, simt::AtomicKind::kReadModifyWrite, simt::AtomicOrder::kAcqRel,
                      simt::Scope::kGpu, site);
  const uint32_t old = *p;
  *p = old + value;
  return old;
}
inline void fence_gpu(simt::Site site = simt::Site::here()) {
  simt::fence(simt::Scope::kGpu, site);
}

} // namespace assay::n_simt::arch
