// SPDX-License-Identifier: Apache-2.0
// Through which the blocks of several devices meet. All accesses have system scope.
//   Packet    16 bytes that are written and read as a whole: three words of data, and the number of
//             the call that they belong to
//   void store_packet(Packet *to, const Packet &packet)                              relaxed
//   uint32_t await_packets(const Packet *const (&from)[N], uint32_t wanted, uint32_t epoch,
//                          uint64_t timeout_ns, Packet (&to)[N])
//             waits for packet i of each bit i of `wanted` to be one of `epoch`, and loads it
//             (relaxed: what else its writer wrote is not ordered by it). Returns the bits of those
//             that had not come after timeout_ns
//   void atomic_or_relaxed(uint32_t *p, uint32_t bits)
// They do not order other memory: all data is in the packet.
#pragma once

#include "kernels/arch/thread.cuh"

namespace assay::ASSAY_TARGET::arch {

struct alignas(16) Packet {
  uint32_t words[3];
  uint32_t epoch;
};

} // namespace assay::ASSAY_TARGET::arch

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/peer.cuh"
#else
#include "kernels/arch/simt/peer.cuh"
#endif
