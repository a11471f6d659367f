// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

inline void store_packet(Packet *to, const Packet &packet, simt::Site site = simt::Site::here()) {
  simt::atomic_access(to, sizeof packet, simt::AtomicKind::kStore, simt::AtomicOrder::kRelaxed,
                      simt::Scope::kSystem, site);
  *to = packet;
}

// NOTE: nothing here measures time: the wait ends when nobody else can run.
template <int N>
uint32_t await_packets(const Packet *const (&from)[N], uint32_t wanted, uint32_t epoch, uint64_t,
                       Packet (&to)[N], simt::Site site = simt::Site::here()) {
  uint32_t missing = 0;
  for (int i = 0; i < N; ++i)
    if ((wanted >> i & 1) != 0) {
      if (simt::await_message(from[i], sizeof to[i], &from[i]->epoch, epoch, simt::Scope::kSystem,
                              site))
        to[i] = *from[i];
      else
        missing |= 1u << i;
    }
  return missing;
}

inline void atomic_or_relaxed(uint32_t *p, uint32_t bits, simt::Site site = simt::Site::here()) {
  simt::atomic_access(p, 4, simt::AtomicKind::kReadModifyWrite, simt::AtomicOrder::kRelaxed,
                      simt::Scope::kSystem, site);
  *p |= bits;
}

} // namespace assay::n_simt::arch
