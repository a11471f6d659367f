// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

// fp8 conversion instructions exist from sm_89 on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define ASSAY_FP8_INSTRUCTIONS 1
#else
#define ASSAY_FP8_INSTRUCTIONS 0
#endif

namespace assay::n_cuda::arch {
namespace detail {

// Two fp8 values (low byte first) to a pair of fp16; exact.
template <class S>
ASSAY_DEVICE uint32_t fp8x2_to_fp16x2(uint16_t packed) {
#if ASSAY_FP8_INSTRUCTIONS
  uint32_t pair;
  if constexpr (sizeof(S) == 1 && std::is_same_v<S, e4m3>)
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(packed));
  else
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(pair) : "h"(packed));
  return pair;
#else
  if constexpr (std::is_same_v<S, e5m2>) {
    // e5m2 is the upper byte of fp16.
    return __byte_perm(packed, 0, 0x1404);
  } else {
    const uint32_t lo = fp16_from_float(e4m3_to_float(static_cast<uint8_t>(packed)));
    const uint32_t hi = fp16_from_float(e4m3_to_float(static_cast<uint8_t>(packed >> 8)));
    return lo | hi << 16;
  }
#endif
}

template <class S>
ASSAY_DEVICE uint8_t fp8_encode(float value) {
#if ASSAY_FP8_INSTRUCTIONS
  uint16_t pair;
  if constexpr (std::is_same_v<S, e4m3>)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return static_cast<uint8_t>(pair);
#else
  if constexpr (std::is_same_v<S, e4m3>)
    return e4m3_from_float(value);
  else
    return e5m2_from_float(value);
#endif
}

} // namespace detail

ASSAY_DEVICE float to_float(bf16 v) { return detail::bf16_to_float(v.bits); }
ASSAY_DEVICE float to_float(fp16 v) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(v.bits));
  return value;
}
ASSAY_DEVICE float to_float(e4m3 v) {
  return to_float(fp16{static_cast<uint16_t>(detail::fp8x2_to_fp16x2<e4m3>(v.bits))});
}
ASSAY_DEVICE float to_float(e5m2 v) { return to_float(fp16{static_cast<uint16_t>(v.bits << 8)}); }

template <class E>
ASSAY_DEVICE E from_float(float value) {
  E result;
  if constexpr (std::is_same_v<E, bf16>)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  else if constexpr (std::is_same_v<E, fp16>)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  else
    result.bits = detail::fp8_encode<E>(value);
  return result;
}

template <class E>
ASSAY_DEVICE uint32_t pack2(float lo, float hi) {
  static_assert(sizeof(E) == 2);
  uint32_t packed;
  if constexpr (std::is_same_v<E, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(hi), "f"(lo));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(hi), "f"(lo));
  return packed;
}
template <class E>
ASSAY_DEVICE void unpack2(uint32_t packed, float &lo, float &hi) {
  static_assert(sizeof(E) == 2);
  lo = to_float(E{static_cast<uint16_t>(packed)});
  hi = to_float(E{static_cast<uint16_t>(packed >> 16)});
}

template <class D, class S>
ASSAY_DEVICE void widen4(uint32_t packed, uint32_t (&out)[2]) {
  static_assert(sizeof(D) == 2 && sizeof(S) == 1);
  if constexpr (std::is_same_v<D, fp16> && std::is_same_v<S, e5m2>) {
    // e5m2 is the upper byte of fp16.
    out[0] = __byte_perm(packed, 0, 0x1404);
    out[1] = __byte_perm(packed, 0, 0x3424);
  } else {
    // The conversion reads the upper half of a vector of two where it is: that saves a shift.
    uint16_t pairs[2];
    asm("mov.b32 {%0, %1}, %2;" : "=h"(pairs[0]), "=h"(pairs[1]) : "r"(packed));
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const uint32_t halves = detail::fp8x2_to_fp16x2<S>(pairs[pair]);
      if constexpr (std::is_same_v<D, fp16>) {
        out[pair] = halves;
      } else {
        float lo, hi;
        unpack2<fp16>(halves, lo, hi);
        out[pair] = pack2<bf16>(lo, hi);
      }
    }
  }
}

template <class D, class S>
ASSAY_DEVICE void widen4_strided(uint32_t packed, uint32_t (&out)[2]) {
  if constexpr (std::is_same_v<D, fp16> && std::is_same_v<S, e5m2>) {
    out[0] = __byte_perm(packed, 0, 0x2404);
    out[1] = __byte_perm(packed, 0, 0x3414);
  } else {
    widen4<D, S>(__byte_perm(packed, 0, 0x3120), out);
  }
}

} // namespace assay::n_cuda::arch
