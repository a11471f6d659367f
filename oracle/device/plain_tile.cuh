// SPDX-License-Identifier: Apache-2.0
// Internal: tiles of the plain pass: 64 keys of 128 elements, as bf16, and the MMAs over them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "oracle/device/pair.cuh"
#include "oracle/device/tile.cuh"

namespace assay::oracle::device {

/// Bytes between rows: 16-byte reads of two rows and of eight meet every bank.
inline constexpr int kPlainKeyPitch = 320, kPlainValuePitch = 272;
inline constexpr int kPlainTileBytes = kTileKeys * (kPlainKeyPitch + kPlainValuePitch);
inline constexpr int kPlainRawBytes = 2 * kTileKeys * kPlainDim;

/// Two values of e4m3 as bf16, exactly.
__device__ inline uint32_t widened(uint32_t two) {
  const __half2_raw half =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(two), __NV_E4M3);
  const float2 wide = __half22float2(__half2(half));
  return __byte_perm(__float_as_uint(wide.x), __float_as_uint(wide.y), 0x7632);
}

/** Two tiles in turn; of fp8 what a thread copied is widened by itself, in a place of its own. */
struct PlainTiles {
  const bool fp8;
  unsigned char *const base;

  __device__ PlainTiles(bool is_fp8, unsigned char *memory) : fp8(is_fp8), base(memory) {}
  __device__ unsigned char *keys(int number) const { return base + number % 2 * kPlainTileBytes; }
  __device__ unsigned char *values(int number) const {
    return keys(number) + kTileKeys * kPlainKeyPitch;
  }
  __device__ unsigned char *raw() const { return base + 2 * kPlainTileBytes; }

  /// Starts a copy; four threads a key.
  __device__ void load(const Call &call, const KeyPlaces &places, int number) const {
    const unsigned char *k = places.k[own_key()], *v = places.v[own_key()];
    unsigned char *to_k =
        fp8 ? raw() + own_key() * kPlainDim : keys(number) + own_key() * kPlainKeyPitch;
    unsigned char *to_v = fp8 ? raw() + kTileKeys * kPlainDim + own_key() * kPlainDim
                              : values(number) + own_key() * kPlainValuePitch;
    const int pieces = fp8 ? 2 : 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i >= pieces) break;
      const int at = (own_part() + 4 * i) * 16;
      copy_async(to_k + at, k != nullptr ? k + at : call.pools[0].k, k != nullptr);
      copy_async(to_v + at, v != nullptr ? v + at : call.pools[0].k, v != nullptr);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  __device__ void arrive(int number) const {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    if (!fp8) return;
    widen(raw() + own_key() * kPlainDim, keys(number) + own_key() * kPlainKeyPitch);
    widen(raw() + (kTileKeys + own_key()) * kPlainDim,
          values(number) + own_key() * kPlainValuePitch);
  }
  __device__ static void widen(const unsigned char *from, unsigned char *to) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int piece = own_part() + 4 * i;
      const uint4 bytes = *reinterpret_cast<const uint4 *>(from + 16 * piece);
      const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t a = words[2 * half], b = words[2 * half + 1];
        *reinterpret_cast<uint4 *>(to + 32 * piece + 16 * half) = make_uint4(
            widened(a & 0xFFFF), widened(a >> 16), widened(b & 0xFFFF), widened(b >> 16));
      }
    }
  }
};

/// The lower and the upper element of a word, as doubles 2^-896 of them.
__device__ inline double lower_number(uint32_t word) {
  const int top = static_cast<int>(word << 16);
  return __hiloint2double((top >> 3) & static_cast<int>(0x8FFFE000u), 0);
}
__device__ inline double upper_number(uint32_t word) {
  return __hiloint2double((static_cast<int>(word) >> 3) & static_cast<int>(0x8FFFE000u), 0);
}

/** c += a b, 16 x 8 by 8 x 8, in fp64. Of a, a lane holds column lane % 4 of rows lane / 4 and 8
    more, then column 4 more of both; of b rows lane % 4 and 4 more of column lane / 4; of c rows as
    of a, columns 2 (lane % 4) and the next. */
__device__ inline void multiply8(double (&c)[4], const double (&a)[4], double b0, double b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else // The same in four quarters: lanes hold their operands alike.
  const auto quarter = [](double &left, double &right, double x, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(left), "+d"(right)
                 : "d"(x), "d"(b));
  };
  quarter(c[0], c[1], a[0], b0);
  quarter(c[0], c[1], a[2], b1);
  quarter(c[2], c[3], a[1], b0);
  quarter(c[2], c[3], a[3], b1);
#endif
}
/** Of words: columns lane % 4 are their lower elements, 4 more their upper ones. */
__device__ inline void multiply8(double (&c)[4], uint32_t first, uint32_t second, double b0,
                                 double b1) {
  const double a[4] = {lower_number(first), lower_number(second), upper_number(first),
                       upper_number(second)};
  multiply8(c, a, b0, b1);
}

/** The same of bf16 with 16 columns of a, summed in fp32. */
__device__ inline void multiply_parts(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                      uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// What sums of bf16 products in fp32 lose over `keys` keys, relative to the sum of their
/// magnitudes: a step of 16 aligns 17 terms by the largest, 25 bits below it (sm_90; 24 before),
/// and rounds. Coefficients are off by 2^-16.
__device__ inline double lost_of(int keys) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr double kStep = 0x1p-20;
#else
  constexpr double kStep = 0x1p-19;
#endif
  return (keys / 16 + 1) * kStep + 0x1p-16;
}

/// Four matrices of 8 x 8, of which a lane gives a row.
__device__ inline void load_rows(uint32_t (&out)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}
__device__ inline void load_transposed(uint32_t (&out)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

/// Elementwise, exactly.
__device__ inline uint32_t larger_of(uint32_t a, uint32_t b) {
  uint32_t most;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
  return most;
}

__device__ inline float load_output(const Call &call, int64_t at) {
  if (call.o_dtype == ASSAY_FP32) return reinterpret_cast<const float *>(call.o)[at];
  if (call.o_dtype == ASSAY_BF16)
    return __bfloat162float(reinterpret_cast<const __nv_bfloat16 *>(call.o)[at]);
  return __half2float(reinterpret_cast<const __half *>(call.o)[at]);
}

/// What sums of |v - c| are taken around: the output as it was written, before its scale.
__device__ inline __nv_bfloat16 plain_center(const Call &call, const Pair &pair, int dim) {
  const int64_t at = call.o_at[pair.row] + pair.head * call.o_stride_head + dim;
  const float o = load_output(call, at) / call.heads[pair.head].v_scale;
  return __float2bfloat16_rn(fabsf(o) < 0x1p60f ? o : 0.0f);
}

} // namespace assay::oracle::device
