// SPDX-License-Identifier: Apache-2.0
// Internal: the elements of a call as numbers. One text for the host and for a GPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/abi/assay.h"
#include "oracle/exact/host_device.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace assay::oracle::device {

ORACLE_HOST_DEVICE inline int bytes_of(assay_dtype dtype) {
  return dtype == ASSAY_FP32 ? 4 : dtype == ASSAY_E4M3 || dtype == ASSAY_E5M2 ? 1 : 2;
}

ORACLE_HOST_DEVICE inline float number_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/** fp16 as a number. */
ORACLE_HOST_DEVICE inline float number_of_half(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
#else
  const uint32_t sign = (bits & 0x8000u) << 16, size = bits & 0x7FFFu;
  if (size >= 0x7C00u) return number_of(sign | 0x7F800000u | (size & 0x3FFu) << 13);
  // The fields where those of fp32 stand are 2^112 too small, subnormals included.
  const float magnitude = number_of(size << 13) * 0x1p112f;
  return sign != 0 ? -magnitude : magnitude;
#endif
}

ORACLE_HOST_DEVICE inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/** The bits of element `at`, zero-extended. Arrays lie at multiples of their elements. */
ORACLE_HOST_DEVICE inline uint32_t load_bits(assay_dtype dtype, const unsigned char *base,
                                             int64_t at) {
  if (bytes_of(dtype) == 1) return base[at];
  if (bytes_of(dtype) == 2) return *reinterpret_cast<const unsigned short *>(base + 2 * at);
  return *reinterpret_cast<const uint32_t *>(base + 4 * at);
}

/** Element `at`, exactly. `fp8`: what fp8 bits are. */
ORACLE_HOST_DEVICE inline float load_element(assay_dtype dtype, const float *fp8,
                                             const unsigned char *base, int64_t at) {
  const uint32_t bits = load_bits(dtype, base, at);
  if (bytes_of(dtype) == 1) return fp8[bits];
  if (dtype == ASSAY_FP32) return number_of(bits);
  return dtype == ASSAY_BF16 ? number_of(bits << 16) : number_of_half(bits);
}

/** Eight elements of 16 or 8 bits that lie at a multiple of their bytes. */
ORACLE_HOST_DEVICE inline void load_eight(assay_dtype dtype, const float *fp8,
                                          const unsigned char *from, float (&out)[8]) {
  struct alignas(8) Eight {
    uint32_t word[2];
  };
  const auto *pieces = reinterpret_cast<const Eight *>(from);
  if (bytes_of(dtype) == 1) {
    const Eight bytes = *pieces;
    for (int i = 0; i < 8; ++i)
      out[i] = fp8[bytes.word[i / 4] >> (8 * (i % 4)) & 0xFF];
    return;
  }
  for (int half = 0; half < 2; ++half) {
    const Eight four = pieces[half];
    for (int i = 0; i < 4; ++i) {
      const uint32_t bits = four.word[i / 2] >> (16 * (i % 2)) & 0xFFFF;
      out[4 * half + i] = dtype == ASSAY_BF16 ? number_of(bits << 16) : number_of_half(bits);
    }
  }
}

} // namespace assay::oracle::device
