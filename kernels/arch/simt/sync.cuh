// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_simt::arch {

inline void block_barrier(simt::Site site = simt::Site::here()) { simt::block_barrier(site); }

inline void warp_barrier(uint32_t mask = kFullMask, simt::Site site = simt::Site::here()) {
  simt::warp_collective({simt::Collective::kWarpBarrier, mask, 0, nullptr, nullptr, 0, nullptr},
                        site);
}

inline void named_barrier(int id, int num_threads, simt::Site site = simt::Site::here()) {
  simt::named_barrier(static_cast<uint32_t>(id), static_cast<uint32_t>(num_threads), site);
}

inline void fence_async_proxy(simt::Site site = simt::Site::here()) {
  simt::fence_async_proxy(site);
}

} // namespace assay::n_simt::arch
