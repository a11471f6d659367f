// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

inline void wait_for_previous_grid(simt::Site site = simt::Site::here()) {
  simt::wait_for_previous_grid(site);
}
inline void start_next_grid(simt::Site site = simt::Site::here()) { simt::start_next_grid(site); }

} // namespace assay::n_simt::arch
