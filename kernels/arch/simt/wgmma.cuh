// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "kernels/arch/simt/block_fma.h"
#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

inline constexpr bool kWarpgroups = true;
inline void trap_without_warpgroups() {} // nothing is compiled without them

struct KMajorMatrix {
  const std::byte *address;
  explicit KMajorMatrix(const void *p) : address(static_cast<const std::byte *>(p)) {}
  KMajorMatrix at(uint32_t bytes) const { return KMajorMatrix(address + bytes); }
};
struct NMajorMatrix {
  const std::byte *address;
  uint32_t block_bytes;
  NMajorMatrix(const void *p, uint32_t block)
      : address(static_cast<const std::byte *>(p)), block_bytes(block) {}
  NMajorMatrix at(uint32_t bytes) const { return {address + bytes, block_bytes}; }
};

namespace detail {

// kernels/arch/simt/wgmma.cpp
enum class WgmmaFormat : uint8_t { kBf16, kFp16, kField };
struct WgmmaArgs {
  WgmmaFormat format;
  bool accumulate;
  uint32_t words;            // number of words of c
  const uint32_t *registers; // registers of A; null: A is at a
  const std::byte *a, *b;
  uint32_t b_block_bytes; // bytes of a block of an NMajorMatrix; 0: b is a KMajorMatrix
};
using WgmmaRegisters = std::array<simt::Registers, 2>; // what a wait names
void apply_wgmma(const simt::WarpCall &call);
void apply_wgmma_fence(const simt::WarpCall &call);
void apply_wgmma_commit(const simt::WarpCall &call);
void apply_wgmma_wait(const simt::WarpCall &call);

template <class E>
constexpr WgmmaFormat wgmma_format() {
  if constexpr (std::is_same_v<E, bf16>) return WgmmaFormat::kBf16;
  if constexpr (std::is_same_v<E, fp16>) return WgmmaFormat::kFp16;
  return WgmmaFormat::kField;
}

template <class E, class Number, int kWords>
inline void wgmma(Number (&c)[kWords], const WgmmaArgs &args, simt::Site site) {
  static_assert(kWords == 32 || kWords == 64);
  static_assert(std::is_same_v<Number, typename Arithmetic<E>::Number> && sizeof(Number) == 4);
  simt::warp_collective({simt::Collective::kWgmma, kFullMask, sizeof c, &args, c, 0, &apply_wgmma},
                        site);
}
inline void wgmma_step(simt::Collective kind, simt::ApplyFunction apply, simt::Site site) {
  simt::warp_collective({kind, kFullMask, 0, nullptr, nullptr, 0, apply}, site);
}
inline void wgmma_wait(int pending, const WgmmaRegisters &named, simt::Site site) {
  simt::warp_collective(
      {simt::Collective::kWgmmaWait, kFullMask, 0, &named, nullptr, pending, &apply_wgmma_wait},
      site);
}

} // namespace detail

template <class E, class Number, int kWords>
inline void wgmma_m64k16(Number (&c)[kWords], KMajorMatrix a, KMajorMatrix b, bool accumulate,
                         simt::Site site = simt::Site::here()) {
  detail::wgmma<E>(
      c, {detail::wgmma_format<E>(), accumulate, kWords, nullptr, a.address, b.address, 0}, site);
}
template <class E, class Number, int kWords>
inline void wgmma_m64k16(Number (&c)[kWords], const uint32_t (&a)[4], NMajorMatrix b,
                         bool accumulate, simt::Site site = simt::Site::here()) {
  detail::wgmma<E>(
      c, {detail::wgmma_format<E>(), accumulate, kWords, a, nullptr, b.address, b.block_bytes},
      site);
}

// Registers are memory of the fiber itself: only the program orders accesses to them.
template <class R>
inline void wgmma_fence(R &, simt::Site site = simt::Site::here()) {
  detail::wgmma_step(simt::Collective::kWgmmaFence, &detail::apply_wgmma_fence, site);
}
template <class R, class S>
inline void wgmma_fence(R &r, S &, simt::Site site = simt::Site::here()) {
  wgmma_fence(r, site);
}
inline void wgmma_commit(simt::Site site = simt::Site::here()) {
  detail::wgmma_step(simt::Collective::kWgmmaCommit, &detail::apply_wgmma_commit, site);
}
template <int kPending, class R>
inline void wgmma_wait(R &r, simt::Site site = simt::Site::here()) {
  detail::wgmma_wait(kPending, {{{&r, sizeof r}, {nullptr, 0}}}, site);
}
template <int kPending, class R, class S>
inline void wgmma_wait(R &r, S &s, simt::Site site = simt::Site::here()) {
  detail::wgmma_wait(kPending, {{{&r, sizeof r}, {&s, sizeof s}}}, site);
}

template <int kCount>
inline void lower_registers() {}
template <int kCount>
inline void raise_registers() {}

} // namespace assay::n_simt::arch
