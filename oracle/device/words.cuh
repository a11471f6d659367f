// SPDX-License-Identifier: Apache-2.0
// Internal: what the elements of a tile are: words of 16 bits, or fp32. Either is loaded, looked at
// and decoded by the same names.
#pragma once

#include <cuda_fp8.h>

#include "oracle/device/tile.cuh"

namespace assay::oracle::device {

enum KeyFlag : uint32_t { kSubnormal = 1, kNotFinite = 2 };

/**
 * A tile of elements of 16 bits: bf16, fp16, or fp8 as the fp16 that it exactly is. They become
 * doubles by a shift: the exponent field lands in that of a double, which then is 2^exponent too
 * small, exactly, zeros and subnormals included. Pitches are bytes between rows: 16-byte reads of
 * two rows of K, and of eight rows of V, meet every bank.
 */
struct Halves {
  static constexpr int kBytes = 2, kKeyPitch = 320, kValuePitch = 272;
  const bool bf16;
  const int exponent, shift, mask;
  const uint32_t infinity, least; ///< bits of infinity, and of the least normal operand

  __device__ explicit Halves(const Call &call)
      : bf16(call.kv_dtype == ASSAY_BF16), exponent(bf16 ? 896 : 1008), shift(bf16 ? 3 : 6),
        mask(static_cast<int>(bf16 ? 0x8FFFE000u : 0x81FFFC00u)),
        infinity(bf16 ? 0x7F80u : 0x7C00u), least(bits_of_power(call.facts.operand.min_exponent)) {}

  /// The bits of 2^power in the type of the tile; 0 where it is below all of its numbers.
  __device__ uint32_t bits_of_power(int power) const {
    const int lowest = bf16 ? -126 : -14, digits = bf16 ? 7 : 10;
    if (power >= lowest) return static_cast<uint32_t>(power - lowest + 1) << digits;
    return power - lowest + digits < 0 ? 0u : 1u << (power - lowest + digits);
  }

  __device__ double lower(uint32_t word) const {
    return __hiloint2double((static_cast<int>(word << 16) >> shift) & mask, 0);
  }
  __device__ double upper(uint32_t word) const {
    return __hiloint2double((static_cast<int>(word) >> shift) & mask, 0);
  }
  /// Two elements that lie side by side.
  __device__ double2 two(const unsigned char *at) const {
    const uint32_t word = *reinterpret_cast<const uint32_t *>(at);
    return {lower(word), upper(word)};
  }

  /// Eight elements of each of two rows, in twos as multiply8 takes them.
  struct Rows {
    uint4 first, second;
  };
  __device__ static Rows rows(const unsigned char *first, const unsigned char *second) {
    return {*reinterpret_cast<const uint4 *>(first), *reinterpret_cast<const uint4 *>(second)};
  }
  __device__ void decode(const Rows &rows, int number, double (&out)[4]) const {
    const uint32_t a[4] = {rows.first.x, rows.first.y, rows.first.z, rows.first.w};
    const uint32_t b[4] = {rows.second.x, rows.second.y, rows.second.z, rows.second.w};
    decode(a[number], b[number], out);
  }
  __device__ void decode(uint32_t first, uint32_t second, double (&out)[4]) const {
    out[0] = lower(first);
    out[1] = lower(second);
    out[2] = upper(first);
    out[3] = upper(second);
  }

  /// 16 values of the warp's 16 components, transposed.
  struct Columns {
    uint32_t word[4];
  };
  __device__ static Columns columns(const unsigned char *values, int step) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    Columns out;
    load_transposed(out.word, values + (16 * step + lane / 16 * 8 + lane % 8) * kValuePitch +
                                  32 * warp + lane / 8 % 2 * 16);
    return out;
  }
  /// Eight of them.
  __device__ void decode(const Columns &columns, int half, double (&out)[4]) const {
    decode(columns.word[2 * half], columns.word[2 * half + 1], out);
  }

  /// Magnitudes with their signs as numbers of two's complement, in order.
  __device__ static uint32_t ordered(uint32_t word) {
    return word ^ ((word >> 15 & 0x00010001u) * 0x7FFFu);
  }
  __device__ static int order_of(const unsigned char *element) {
    const uint32_t bits = *reinterpret_cast<const unsigned short *>(element);
    return static_cast<short>(ordered(bits) & 0xFFFFu);
  }
  __device__ float number_of_order(int x) const {
    const uint32_t bits = ordered(static_cast<uint32_t>(x) & 0xFFFFu);
    return decoded(bf16 ? ASSAY_BF16 : ASSAY_FP16, bits);
  }

  __device__ static uint32_t half_at(const Call &call, const unsigned char *row, int i) {
    if (bytes_of(call.kv_dtype) == 2) return load_bits(call.kv_dtype, row, i);
    return __nv_cvt_fp8_to_halfraw(row[i], kind_of(call)).x;
  }
  __device__ static __nv_fp8_interpretation_t kind_of(const Call &call) {
    return call.kv_dtype == ASSAY_E4M3 ? __NV_E4M3 : __NV_E5M2;
  }
  /// Eight elements of fp8, or those of a row that lies anyhow.
  __device__ static uint4 load_piece(const Call &call, const unsigned char *row, int first,
                                     int present) {
    uint32_t word[4] = {};
    if (present == 8 && call.aligned && bytes_of(call.kv_dtype) == 1) {
      const uint2 raw = *reinterpret_cast<const uint2 *>(row + first);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t half = i < 2 ? raw.x : raw.y;
        const auto pair = static_cast<__nv_fp8x2_storage_t>(half >> (16 * (i % 2)));
        const __half2_raw two = __nv_cvt_fp8x2_to_halfraw2(pair, kind_of(call));
        word[i] = two.x | static_cast<uint32_t>(two.y) << 16;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (i < present) word[i / 2] |= half_at(call, row, first + i) << (16 * (i % 2));
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
  }

  /** Starts the copy of elements `first` and on of a key, of `dims` in all, to a row of the tile,
      which zeros fill. */
  __device__ void load(const Call &call, const ElementPlace &place, int first, int dims,
                       unsigned char *to) const {
    const bool direct = call.aligned && bytes_of(call.kv_dtype) == 2 && dims % 8 == 0;
#pragma unroll
    for (int i = 0; i < kPartDim / 32; ++i) {
      const int piece = own_part() + 4 * i, from = first + 8 * piece;
      const bool has = place.row != nullptr && from < dims;
      if (direct)
        copy_async(to + 16 * piece,
                   has ? place.row + 2 * from : static_cast<const void *>(call.runs), has);
      else
        *reinterpret_cast<uint4 *>(to + 16 * piece) =
            load_piece(call, place.row, from, has ? min(8, dims - from) : 0);
    }
  }

  /** Says, of a thread's part of a key, whether it holds subnormal operands or what is no number. The
      latter decodes as some number, which spoils nothing where a coefficient is zero. */
  __device__ uint32_t scan(unsigned char *row) const {
    // Magnitudes, and those less one with zero as the largest: both ordered as signed halves.
    uint32_t largest = 0, smallest = 0x7FFF7FFFu;
#pragma unroll
    for (int i = 0; i < kPartDim / 32; ++i) {
      const uint4 w = *reinterpret_cast<const uint4 *>(row + (own_part() + 4 * i) * 16);
      const auto size = [](uint32_t x) { return x & 0x7FFF7FFFu; };
      const auto less = [](uint32_t x) { return (x | 0x80008000u) - 0x00010001u; };
      largest = __vimax3_s16x2(largest, size(w.x), size(w.y));
      largest = __vimax3_s16x2(largest, size(w.z), size(w.w));
      smallest = __vimin3_s16x2(smallest, less(w.x), less(w.y));
      smallest = __vimin3_s16x2(smallest, less(w.z), less(w.w));
    }
    const uint32_t most = max(largest & 0xFFFF, largest >> 16);
    const uint32_t low = (smallest & 0xFFFF) ^ 0x8000, high = (smallest >> 16) ^ 0x8000;
    const uint32_t fewest = min(low, high) + 1; // of what is not zero; else 2^16
    return (fewest < least ? kSubnormal : 0u) | (most >= infinity ? kNotFinite : 0u);
  }
};

/** A tile of fp32: elements times the scales of their tokens. */
struct Singles {
  static constexpr int kBytes = 4, kKeyPitch = 528, kValuePitch = 528;
  static constexpr int exponent = 0;
  const float least;

  __device__ explicit Singles(const Call &call)
      : least(ldexpf(1.0f, call.facts.operand.min_exponent)) {}

  __device__ double2 two(const unsigned char *at) const {
    const auto x = *reinterpret_cast<const float2 *>(at);
    return {x.x, x.y};
  }

  struct Rows {
    const float *first, *second;
  };
  __device__ static Rows rows(const unsigned char *first, const unsigned char *second) {
    return {reinterpret_cast<const float *>(first), reinterpret_cast<const float *>(second)};
  }
  __device__ static void decode(const Rows &rows, int number, double (&out)[4]) {
    out[0] = rows.first[2 * number];
    out[1] = rows.second[2 * number];
    out[2] = rows.first[2 * number + 1];
    out[3] = rows.second[2 * number + 1];
  }

  struct Columns {
    const unsigned char *first; ///< of the lane's two keys of a half, component lane / 4
  };
  __device__ static Columns columns(const unsigned char *values, int step) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    return {values + (16 * step + lane % 4 * 2) * kValuePitch + 4 * (16 * warp + lane / 4)};
  }
  __device__ static void decode(const Columns &columns, int half, double (&out)[4]) {
    const auto at = [&](int key, int component) {
      return *reinterpret_cast<const float *>(columns.first + (8 * half + key) * kValuePitch +
                                              4 * component);
    };
    out[0] = at(0, 0);
    out[1] = at(0, 8);
    out[2] = at(1, 0);
    out[3] = at(1, 8);
  }

  __device__ static int order_of(const unsigned char *element) {
    const int bits = *reinterpret_cast<const int *>(element);
    return bits < 0 ? bits ^ 0x7FFFFFFF : bits;
  }
  __device__ static float number_of_order(int x) {
    return __int_as_float(x < 0 ? x ^ 0x7FFFFFFF : x);
  }

  __device__ static void load(const Call &call, const ElementPlace &place, int first, int dims,
                              unsigned char *to) {
    auto *row = reinterpret_cast<float *>(to) + 32 * own_part();
    for (int i = 0; i < 32; ++i) {
      const int from = first + 32 * own_part() + i;
      row[i] = place.row != nullptr && from < dims ? place.element(call.kv_dtype, from) : 0.0f;
    }
  }
  /// Scans the elements likewise. What is no number becomes zero, since its product with zero would
  /// be no number either.
  __device__ uint32_t scan(unsigned char *of) const {
    auto *row = reinterpret_cast<float *>(of) + 32 * own_part();
    uint32_t flags = 0;
    for (int i = 0; i < 32; ++i) {
      const float size = fabsf(row[i]);
      if (size != 0.0f && size < least) flags |= kSubnormal;
      if (size < INFINITY) continue;
      flags |= kNotFinite;
      row[i] = 0.0f;
    }
    return flags;
  }
};

} // namespace assay::oracle::device
