// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

inline void cp_async_16(void *shared_dst, const void *global_src, bool valid,
                        simt::Site site = simt::Site::here()) {
  simt::async_copy(shared_dst, global_src, 16, valid, site);
}
inline void cp_async_commit() { simt::async_commit(); }
template <int N>
inline void cp_async_wait(simt::Site site = simt::Site::here()) {
  static_assert(N >= 0);
  simt::async_wait(N, site);
}

} // namespace assay::n_simt::arch
