// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {
namespace detail {

template <class T>
constexpr bool kIsWord = std::is_trivially_copyable_v<T> &&
                         (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 ||
                          sizeof(T) == 16);

template <class T>
inline T read_bytes(const T *p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

} // namespace detail

template <class T>
inline T &shared_storage(simt::Site site = simt::Site::here()) {
  return *static_cast<T *>(simt::shared_base(sizeof(T), alignof(T), site));
}

template <class T>
inline T *kept(T *p) {
  return p;
}

template <class T>
inline T shared_load(const T *p, simt::Site site = simt::Site::here()) {
  static_assert(detail::kIsWord<T>);
  simt::access(simt::Space::kShared, simt::AccessKind::kRead, p, sizeof(T), sizeof(T), site);
  return detail::read_bytes(p);
}

template <class T>
inline void shared_store(T *p, std::type_identity_t<T> value,
                         simt::Site site = simt::Site::here()) {
  static_assert(detail::kIsWord<T>);
  simt::access(simt::Space::kShared, simt::AccessKind::kWrite, p, sizeof(T), sizeof(T), site);
  std::memcpy(p, &value, sizeof(T));
}

} // namespace assay::n_simt::arch
