// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

inline void mbarrier_init(Mbarrier *b, uint32_t count, simt::Site site = simt::Site::here()) {
  simt::mbarrier_init(b, count, site);
}
inline void mbarrier_arrive(Mbarrier *b, simt::Site site = simt::Site::here()) {
  simt::mbarrier_arrive(b, site);
}
inline void mbarrier_expect_tx(Mbarrier *b, uint32_t bytes, simt::Site site = simt::Site::here()) {
  simt::mbarrier_expect(b, bytes, site);
}
inline void mbarrier_arrive_expect_tx(Mbarrier *b, uint32_t bytes,
                                      simt::Site site = simt::Site::here()) {
  simt::mbarrier_expect(b, bytes, site);
  simt::mbarrier_arrive(b, site);
}
inline void fence_mbarrier_init(simt::Site site = simt::Site::here()) {
  simt::fence_mbarrier_init(site);
}
inline void mbarrier_wait(Mbarrier *b, uint32_t parity, simt::Site site = simt::Site::here()) {
  simt::mbarrier_wait(b, parity, site);
}

} // namespace assay::n_simt::arch
