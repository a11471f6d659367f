// SPDX-License-Identifier: Apache-2.0
// Moves four or eight elements at a time between memory and registers.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/arch/load_store.cuh"

#include <type_traits>

namespace assay::ASSAY_TARGET {

/// kCount (4 or 8) consecutive elements as stored: 8 or 16 bytes of 16-bit types, 16 or 32 of fp32.
/// Vectors are built member by member, because the compiler stores single words through a union.
template <class E, int kCount>
struct Pack {
  using Number = typename arch::Arithmetic<E>::Number;
  using Vector = std::conditional_t<sizeof(E) * kCount == 8, arch::Vec2, arch::Vec4>;
  static constexpr int kVectors = sizeof(E) * kCount / sizeof(Vector);
  static constexpr int kPerVector = kCount / kVectors; // elements
  Vector raw[kVectors];

  static ASSAY_DEVICE Pack load(const E *p) {
    Pack r;
    ASSAY_UNROLL
    for (int i = 0; i < kVectors; ++i)
      r.raw[i] = arch::global_load(reinterpret_cast<const Vector *>(p) + i);
    return r;
  }

  ASSAY_DEVICE void store(E *p) const {
    ASSAY_UNROLL
    for (int i = 0; i < kVectors; ++i)
      arch::global_store(reinterpret_cast<Vector *>(p) + i, raw[i]);
  }

  ASSAY_DEVICE void unpack(Number (&v)[kCount]) const {
    ASSAY_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      Number *const part = v + i * kPerVector;
      unpack_word(raw[i].x, 0, part);
      unpack_word(raw[i].y, 1, part);
      if constexpr (sizeof(Vector) == 16) {
        unpack_word(raw[i].z, 2, part);
        unpack_word(raw[i].w, 3, part);
      }
    }
  }

  /// Rounds to nearest even.
  static ASSAY_DEVICE Pack pack(const Number (&v)[kCount]) {
    Pack r;
    ASSAY_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const Number *const part = v + i * kPerVector;
      if constexpr (sizeof(Vector) == 8)
        r.raw[i] = {pack_word(part, 0), pack_word(part, 1)};
      else
        r.raw[i] = {pack_word(part, 0), pack_word(part, 1), pack_word(part, 2), pack_word(part, 3)};
    }
    return r;
  }

private:
  static ASSAY_DEVICE void unpack_word(uint32_t word, int index, Number *v) {
    if constexpr (sizeof(E) == 2)
      arch::unpack2<E>(word, v[2 * index], v[2 * index + 1]);
    else
      v[index] = arch::word_to<Number>(word);
  }
  static ASSAY_DEVICE uint32_t pack_word(const Number *v, int index) {
    if constexpr (sizeof(E) == 2)
      return arch::pack2<E>(v[2 * index], v[2 * index + 1]);
    else
      return arch::word_of(v[index]);
  }
};
template <class E>
using Pack8 = Pack<E, 8>;

} // namespace assay::ASSAY_TARGET
