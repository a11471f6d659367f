// SPDX-License-Identifier: Apache-2.0
// Element types: eight values at a time between memory and registers.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/arch/load_store.cuh"

namespace assay::ASSAY_TARGET {

/// Eight consecutive elements as stored: 16 bytes for 16-bit types, 32 for fp32.
template <class E>
struct Pack8 {
  using Number = typename arch::Arithmetic<E>::Number;
  static constexpr int kVectors = sizeof(E) * 8 / sizeof(arch::Vec4);
  arch::Vec4 raw[kVectors];

  static ASSAY_DEVICE Pack8 load(const E *p) {
    Pack8 r;
    ASSAY_UNROLL
    for (int i = 0; i < kVectors; ++i)
      r.raw[i] = arch::global_load(reinterpret_cast<const arch::Vec4 *>(p) + i);
    return r;
  }

  ASSAY_DEVICE void store(E *p) const {
    ASSAY_UNROLL
    for (int i = 0; i < kVectors; ++i)
      arch::global_store(reinterpret_cast<arch::Vec4 *>(p) + i, raw[i]);
  }

  ASSAY_DEVICE void unpack(Number (&v)[8]) const {
    if constexpr (sizeof(E) == 2) {
      arch::unpack2<E>(raw[0].x, v[0], v[1]);
      arch::unpack2<E>(raw[0].y, v[2], v[3]);
      arch::unpack2<E>(raw[0].z, v[4], v[5]);
      arch::unpack2<E>(raw[0].w, v[6], v[7]);
    } else {
      ASSAY_UNROLL
      for (int i = 0; i < kVectors; ++i) {
        v[4 * i] = arch::word_to<Number>(raw[i].x);
        v[4 * i + 1] = arch::word_to<Number>(raw[i].y);
        v[4 * i + 2] = arch::word_to<Number>(raw[i].z);
        v[4 * i + 3] = arch::word_to<Number>(raw[i].w);
      }
    }
  }

  /// Rounds to nearest even.
  static ASSAY_DEVICE Pack8 pack(const Number (&v)[8]) {
    Pack8 r;
    if constexpr (sizeof(E) == 2) {
      r.raw[0] = {arch::pack2<E>(v[0], v[1]), arch::pack2<E>(v[2], v[3]),
                  arch::pack2<E>(v[4], v[5]), arch::pack2<E>(v[6], v[7])};
    } else {
      ASSAY_UNROLL
      for (int i = 0; i < kVectors; ++i)
        r.raw[i] = {arch::word_of(v[4 * i]), arch::word_of(v[4 * i + 1]),
                    arch::word_of(v[4 * i + 2]), arch::word_of(v[4 * i + 3])};
    }
    return r;
  }
};

} // namespace assay::ASSAY_TARGET
