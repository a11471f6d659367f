// SPDX-License-Identifier: Apache-2.0
// Internal: the elements of a call as numbers. One text for the host and for a GPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/abi/assay_judge.h"
#include "oracle/exact/host_device.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace assay::oracle::device {

ORACLE_HOST_DEVICE inline int bytes_of(assay_dtype dtype) {
  if (dtype == ASSAY_FP32) return 4;
  return dtype == ASSAY_FP16 || dtype == ASSAY_BF16 ? 2 : 1;
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

/** e4m3 as a number: its fields, where those of fp16 stand, are 2^8 too small. */
ORACLE_HOST_DEVICE inline float number_of_e4m3(uint32_t bits) {
  if ((bits & 0x7Fu) == 0x7Fu) return number_of(0x7FC00000u);
  return number_of_half((bits & 0x80u) << 8 | (bits & 0x7Fu) << 7) * 256.0f;
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

/** Bits of an element as a number, exactly. */
ORACLE_HOST_DEVICE inline float decoded(assay_dtype dtype, uint32_t bits) {
  if (dtype == ASSAY_BF16) return number_of(bits << 16);
  if (dtype == ASSAY_FP16) return number_of_half(bits);
  if (dtype == ASSAY_E4M3) return number_of_e4m3(bits);
  if (dtype == ASSAY_E5M2) return number_of_half(bits << 8);
  if (dtype == ASSAY_INT8) return static_cast<float>(static_cast<signed char>(bits));
  return number_of(bits);
}

ORACLE_HOST_DEVICE inline float load_element(assay_dtype dtype, const unsigned char *base,
                                             int64_t at) {
  return decoded(dtype, load_bits(dtype, base, at));
}

} // namespace assay::oracle::device
