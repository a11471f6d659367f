// SPDX-License-Identifier: Apache-2.0
// The storage formats and their conversions. Conversions to fp32 are exact, and those from fp32
// round to nearest even. Both targets give the same bits. A NaN comes out canonical: its sign and
// its payload are lost.
//   struct bf16, fp16 {uint16_t bits}; struct e4m3, e5m2 {uint8_t bits}
//   float to_float(E)
//   E from_float<E>(float)            bf16, fp16: what is too large becomes infinity
//                                     e4m3, e5m2: what is too large, infinity as well, becomes the
//                                     largest finite value
//   uint32_t pack2<E>(lo, hi)         E = bf16, fp16; lo in the low 16 bits
//   void unpack2<E>(packed, lo, hi)
//   void widen4<D, S>(packed, out)    turns four S = e4m3, e5m2, the first in the low byte, into
//                                     two pairs of D = bf16, fp16: (0, 1) and (2, 3); exact
//   void widen4_strided<D, S>(...)    the same with pairs (0, 2) and (1, 3)
//   float bits_to_float(uint32_t); uint32_t float_to_bits(float)
//   Arithmetic<E>                     what kernels compute with when elements are stored as E
//   R word_to<R>(uint32_t); uint32_t word_of(R)  a Number and its 32 bits
#pragma once

#include "kernels/arch/convert_bits.cuh"
#include "kernels/arch/target.cuh"

namespace assay::ASSAY_TARGET::arch {

ASSAY_HOST_DEVICE float bits_to_float(uint32_t bits) { return detail::float_of(bits); }
ASSAY_HOST_DEVICE uint32_t float_to_bits(float value) { return detail::bits_of(value); }

struct bf16 {
  uint16_t bits;
};
struct fp16 {
  uint16_t bits;
};
struct e4m3 {
  uint8_t bits;
};
struct e5m2 {
  uint8_t bits;
};

/// Number is the type of accumulators, LSE and partials, and has 4 bytes. Output is the type that O
/// is stored as. Kernels name these types and never `float`, so that another arithmetic can run
/// through the same source.
template <class E>
struct Arithmetic {
  using Number = float;
  using Output = E;
};

template <class R>
ASSAY_HOST_DEVICE R word_to(uint32_t word) {
  static_assert(sizeof(R) == 4);
  R value;
  memcpy(static_cast<void *>(&value), &word, 4);
  return value;
}
template <class R>
ASSAY_HOST_DEVICE uint32_t word_of(R value) {
  static_assert(sizeof(R) == 4);
  uint32_t word;
  memcpy(&word, &value, 4);
  return word;
}

} // namespace assay::ASSAY_TARGET::arch

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/convert.cuh"
#else
#include "kernels/arch/simt/convert.cuh"
#endif
