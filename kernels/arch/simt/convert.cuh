// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_simt::arch {

inline float to_float(bf16 v) { return detail::bf16_to_float(v.bits); }
inline float to_float(fp16 v) { return detail::fp16_to_float(v.bits); }
inline float to_float(e4m3 v) { return detail::e4m3_to_float(v.bits); }
inline float to_float(e5m2 v) { return detail::e5m2_to_float(v.bits); }

template <class E>
E from_float(float value);
template <>
inline bf16 from_float<bf16>(float value) {
  return {detail::bf16_from_float(value)};
}
template <>
inline fp16 from_float<fp16>(float value) {
  return {detail::fp16_from_float(value)};
}
template <>
inline e4m3 from_float<e4m3>(float value) {
  return {detail::e4m3_from_float(value)};
}
template <>
inline e5m2 from_float<e5m2>(float value) {
  return {detail::e5m2_from_float(value)};
}

template <class E>
inline uint32_t pack2(float lo, float hi) {
  static_assert(sizeof(E) == 2);
  return from_float<E>(lo).bits | static_cast<uint32_t>(from_float<E>(hi).bits) << 16;
}
template <class E>
inline void unpack2(uint32_t packed, float &lo, float &hi) {
  static_assert(sizeof(E) == 2);
  lo = to_float(E{static_cast<uint16_t>(packed)});
  hi = to_float(E{static_cast<uint16_t>(packed >> 16)});
}

template <class D, class S>
inline void widen4(uint32_t packed, uint32_t (&out)[2]) {
  static_assert(sizeof(D) == 2 && sizeof(S) == 1);
  for (int pair = 0; pair < 2; ++pair) {
    const float lo = to_float(S{static_cast<uint8_t>(packed >> (16 * pair))});
    const float hi = to_float(S{static_cast<uint8_t>(packed >> (16 * pair + 8))});
    out[pair] = pack2<D>(lo, hi);
  }
}

template <class D, class S>
inline void widen4_strided(uint32_t packed, uint32_t (&out)[2]) {
  widen4<D, S>((packed & 0xff0000ffu) | (packed & 0xff00u) << 8 | (packed & 0xff0000u) >> 8, out);
}

} // namespace assay::n_simt::arch
