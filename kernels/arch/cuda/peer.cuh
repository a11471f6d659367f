// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {
namespace detail {

ASSAY_DEVICE uint64_t nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

ASSAY_DEVICE uint64_t two_words(uint32_t low, uint32_t high) {
  return low | static_cast<uint64_t>(high) << 32;
}

// One access of 128 bits, which other threads of the system see as a whole (PTX ISA 8.3).
ASSAY_DEVICE Packet load_packet(const Packet *p) {
  uint64_t low, high;
  asm volatile("{ .reg .b128 t; ld.relaxed.sys.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
               : "=l"(low), "=l"(high)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return {
      {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high)},
      static_cast<uint32_t>(high >> 32)};
}

/// Loads what is missing, all at once; the bits of what still is.
template <int N>
ASSAY_DEVICE uint32_t load_missing(const Packet *const (&from)[N], uint32_t missing, uint32_t epoch,
                                   Packet (&to)[N]) {
  ASSAY_UNROLL
  for (int i = 0; i < N; ++i)
    if ((missing >> i & 1) != 0) to[i] = load_packet(from[i]);
  ASSAY_UNROLL
  for (int i = 0; i < N; ++i)
    if ((missing >> i & 1) != 0 && to[i].epoch == epoch) missing &= ~(1u << i);
  return missing;
}

} // namespace detail

ASSAY_DEVICE void store_packet(Packet *to, const Packet &packet) {
  asm volatile("{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.sys.global.b128 [%0], t; }" ::"l"(
                   __cvta_generic_to_global(to)),
               "l"(detail::two_words(packet.words[0], packet.words[1])),
               "l"(detail::two_words(packet.words[2], packet.epoch))
               : "memory");
}

template <int N>
ASSAY_DEVICE uint32_t await_packets(const Packet *const (&from)[N], uint32_t wanted, uint32_t epoch,
                                    uint64_t timeout_ns, Packet (&to)[N]) {
  constexpr int kLoadsPerLook = 32; // at the clock, which takes as long as a load
  uint32_t missing = wanted;
  uint64_t begin = 0;
  for (int loads = 0; missing != 0; ++loads) {
    missing = detail::load_missing(from, missing, epoch, to);
    if (loads % kLoadsPerLook != kLoadsPerLook - 1) continue;
    const uint64_t now = detail::nanoseconds();
    if (begin == 0) begin = now;
    if (now - begin >= timeout_ns) break;
  }
  return missing;
}

ASSAY_DEVICE void atomic_or_relaxed(uint32_t *p, uint32_t bits) {
  asm volatile("red.relaxed.sys.global.or.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
               "r"(bits)
               : "memory");
}

} // namespace assay::n_cuda::arch
