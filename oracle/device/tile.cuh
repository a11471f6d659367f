// SPDX-License-Identifier: Apache-2.0
// Internal: a tile of keys in shared memory, decoded where it is used. Elements of 16 bits become
// doubles by a shift: the exponent field lands in that of a double, which then is 2^kUnscale too
// small, exactly, zeros and subnormals included.
#pragma once

#include <cuda_fp8.h>

#include "oracle/device/call_rows.h"

namespace assay::oracle::device {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
/// Products of a query times 2^500 with a decoded key, and of a weight times 2^800 with a decoded
/// value, neither overflow nor lose a bit, whatever the elements are.
inline constexpr int kQueryScale = 500, kWeightScale = 800;

enum KeyFlag : uint32_t { kSubnormalKey = 1, kSubnormalValue = 2, kNotFinite = 4 };

/** How elements of 16 bits become numbers. */
struct Decoder {
  int shift;                 ///< of the magnitude's bits, from the top half of a word, to the right
  int exponent;              ///< a decoded double is 2^-exponent of the number
  uint32_t infinity, normal; ///< bits of infinity and of the smallest normal number

  __device__ explicit Decoder(bool bf16)
      : shift(bf16 ? 3 : 6), exponent(bf16 ? 896 : 1008), infinity(bf16 ? 0x7F80 : 0x7C00),
        normal(bf16 ? 0x0080 : 0x0400) {}

  /// From products of decoded keys and scaled queries to scores.
  __device__ double score_scale() const { return shift == 3 ? 0x1p396 : 0x1p508; }
  __device__ double scale() const { return shift == 3 ? 0x1p896 : 0x1p1008; }

  /// `top`: the element in the upper half of a word.
  __device__ double magnitude(uint32_t top) const {
    return __hiloint2double(static_cast<int>((top & 0x7FFF0000u) >> shift), 0);
  }
  __device__ static double with_sign(double magnitude, uint32_t top) {
    return __hiloint2double(__double2hiint(magnitude) | static_cast<int>(top & 0x80000000u), 0);
  }
  template <bool kBf16>
  __device__ static float number(uint32_t top) {
    if constexpr (kBf16) return __uint_as_float(top & 0xFFFF0000u);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(top >> 16)));
  }
};

/** Rows of K lie 64 bytes apart modulo 128 and rows of V 32: reads of a warp then meet every bank. */
struct TileShape {
  int k_dims, v_dims; ///< padded with zeros
  int k_pitch, v_pitch;

  __host__ __device__ TileShape(int head_dim, int dims)
      : k_dims((head_dim + 31) / 32 * 32), v_dims((dims + 15) / 16 * 16),
        k_pitch((2 * k_dims - 64 + 127) / 128 * 128 + 64),
        v_pitch((2 * v_dims - 32 + 127) / 128 * 128 + 32) {}
  __host__ __device__ int bytes() const { return kTileKeys * (k_pitch + v_pitch); }
};

/** Where the keys of a tile lie. */
struct KeyPlaces {
  const unsigned char *k[kTileKeys], *v[kTileKeys]; ///< null: there is none
};

__device__ inline int element_bytes(assay_dtype dtype) {
  return dtype == ASSAY_E4M3 || dtype == ASSAY_E5M2 ? 1 : 2;
}

/** The run of key `position`, which the list has. */
__device__ inline KeyRun run_of(const Call &call, const ListWork &work, int position) {
  const int64_t low = call.first_run[work.list];
  if (work.run_keys > 0) return call.runs[low + position / work.run_keys];
  return run_among(call.runs, low, call.first_run[work.list + 1] - 1, position);
}

__device__ inline void place_key(const Call &call, const KeyRun &run, int kv_head, int position,
                                 int key, KeyPlaces &places) {
  const DevicePool &pool = call.pools[run.pool];
  const int slot = position - run.position, bytes = element_bytes(call.kv_dtype);
  places.k[key] =
      pool.k + (run.k_at + slot * pool.k_stride_token + kv_head * pool.k_stride_head) * bytes;
  places.v[key] =
      pool.v + (run.v_at + slot * pool.v_stride_token + kv_head * pool.v_stride_head) * bytes;
}

/// 16 bits of one element; fp8 as the fp16 that it exactly is.
__device__ inline uint32_t load_bits16(const Call &call, const unsigned char *row, int i) {
  if (element_bytes(call.kv_dtype) == 2) {
    const auto *bytes = row + 2 * i;
    return bytes[0] | static_cast<uint32_t>(bytes[1]) << 8;
  }
  const auto kind = call.kv_dtype == ASSAY_E4M3 ? __NV_E4M3 : __NV_E5M2;
  return __nv_cvt_fp8_to_halfraw(row[i], kind).x;
}

/// 16 bytes, or zeros.
__device__ inline void copy_async(void *to, const void *from, bool present) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}

/** Four threads load a key, and look at what they loaded. */
__device__ inline int own_key() { return static_cast<int>(threadIdx.x) / 4; }
__device__ inline int own_part() { return static_cast<int>(threadIdx.x) % 4; }

/// Eight elements of fp8, or those of a row that lies anyhow.
__device__ inline uint4 load_piece(const Call &call, const unsigned char *row, int first,
                                   int present) {
  uint32_t word[4] = {};
  if (present == 8 && call.aligned) {
    const uint2 raw = *reinterpret_cast<const uint2 *>(row + first);
    const auto kind = call.kv_dtype == ASSAY_E4M3 ? __NV_E4M3 : __NV_E5M2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t half = i < 2 ? raw.x : raw.y;
      const auto pair = static_cast<__nv_fp8x2_storage_t>(half >> (16 * (i % 2)));
      const __half2_raw two = __nv_cvt_fp8x2_to_halfraw2(pair, kind);
      word[i] = two.x | static_cast<uint32_t>(two.y) << 16;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < present) word[i / 2] |= load_bits16(call, row, first + i) << (16 * (i % 2));
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

/** Starts the copy of one side of a tile: rows of `dims` elements, padded with zeros. `base`: any
    address that may be read. */
template <int kBlocks>
__device__ inline void load_side(const Call &call, const unsigned char *row, const void *base,
                                 int dims, int padded, int pitch, unsigned char *to) {
  const bool direct = call.aligned && element_bytes(call.kv_dtype) == 2 && dims % 8 == 0;
  unsigned char *out = to + own_key() * pitch;
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
    const int piece = own_part() + 4 * i;
    if (piece * 8 >= padded) continue;
    const bool has = row != nullptr && piece * 8 < dims;
    if (direct)
      copy_async(out + piece * 16, has ? row + piece * 16 : base, has);
    else
      *reinterpret_cast<uint4 *>(out + piece * 16) =
          load_piece(call, row, piece * 8, has ? min(8, dims - piece * 8) : 0);
  }
}

template <int kBlocks>
__device__ inline void load_tile(const Call &call, const TileShape &shape, const KeyPlaces &places,
                                 unsigned char *tile) {
  load_side<kBlocks>(call, places.k[own_key()], call.pools[0].k, call.head_dim, shape.k_dims,
                     shape.k_pitch, tile);
  load_side<kBlocks>(call, places.v[own_key()], call.pools[0].k, call.dims, shape.v_dims,
                     shape.v_pitch, tile + kTileKeys * shape.k_pitch);
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/** What is special about the keys of a tile. */
struct KeyMarks {
  uint32_t k[kTileKeys], v[kTileKeys]; ///< KeyFlag
};

/// What is no number in a thread's part of a key becomes zero.
__device__ inline void clear_not_finite(const Decoder &decoder, int padded, unsigned char *row) {
  for (int piece = own_part(); piece < padded / 8; piece += 4) {
    auto *words = reinterpret_cast<uint32_t *>(row + piece * 16);
    for (int i = 0; i < 4; ++i) {
      if ((words[i] & 0x7FFF) >= decoder.infinity) words[i] &= 0xFFFF0000u;
      if ((words[i] >> 16 & 0x7FFF) >= decoder.infinity) words[i] &= 0x0000FFFFu;
    }
  }
}

/** Marks the keys of one side that hold subnormal numbers or what is no number; the latter become
    zeros, so that rows which do not see the key are not spoilt. Four threads a key. */
template <int kBlocks>
__device__ inline void scan_side(const Decoder &decoder, uint32_t subnormal, int padded, int pitch,
                                 unsigned char *side, uint32_t *marks) {
  // Magnitudes, and those less one with zero as the largest: both ordered as signed halves.
  uint32_t largest = 0, least = 0x7FFF7FFFu;
  unsigned char *row = side + own_key() * pitch;
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
    const int piece = own_part() + 4 * i;
    if (piece * 8 >= padded) continue;
    const uint4 w = *reinterpret_cast<const uint4 *>(row + piece * 16);
    const auto size = [](uint32_t x) { return x & 0x7FFF7FFFu; };
    const auto less = [](uint32_t x) { return (x | 0x80008000u) - 0x00010001u; };
    largest = __vimax3_s16x2(largest, size(w.x), size(w.y));
    largest = __vimax3_s16x2(largest, size(w.z), size(w.w));
    least = __vimin3_s16x2(least, less(w.x), less(w.y));
    least = __vimin3_s16x2(least, less(w.z), less(w.w));
  }
  if (max(largest & 0xFFFF, largest >> 16) >= decoder.infinity)
    clear_not_finite(decoder, padded, row);
#pragma unroll
  for (int step = 1; step < 4; step *= 2) {
    largest = __vimax3_s16x2(largest, __shfl_xor_sync(~0u, largest, step), 0);
    least = __vimin3_s16x2(least, __shfl_xor_sync(~0u, least, step), 0x7FFF7FFFu);
  }
  if (own_part() != 0) return;
  const uint32_t most = max(largest & 0xFFFF, largest >> 16);
  const uint32_t low = (least & 0xFFFF) ^ 0x8000, high = (least >> 16) ^ 0x8000;
  const uint32_t fewest = min(low, high) + 1; // of what is not zero; else 2^16
  marks[own_key()] =
      (fewest < decoder.normal ? subnormal : 0u) | (most >= decoder.infinity ? kNotFinite : 0u);
}

/** c += a b, 8 x 4 by 4 x 8, in fp64: a of row lane / 4 and column lane % 4, b of row lane % 4 and
    column lane / 4, c of row lane / 4 and columns 2 (lane % 4) and the next. */
__device__ inline void multiply(double (&c)[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(c[0]), "+d"(c[1])
               : "d"(a), "d"(b));
}

/** c += a b, 16 x 16 by 16 x 8 of 16 bits, summed in fp32. Of a, a lane holds columns
    2 (lane % 4) + {0, 1} and eight more of row lane / 4, and rows 8 to 15 are ones; of b the same
    rows of column lane / 4; c as that of the other, in row lane / 4 and in row 8 and on. */
template <bool kBf16>
__device__ inline void multiply16(float (&c)[4], const uint32_t (&a)[2], uint32_t b0, uint32_t b1) {
  constexpr uint32_t kOnes = kBf16 ? 0x3F803F80u : 0x3C003C00u;
  if constexpr (kBf16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %5}, {%7, %8}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(kOnes), "r"(a[1]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %5}, {%7, %8}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(kOnes), "r"(a[1]), "r"(b0), "r"(b1));
}

/// Queries of a unit times 2^kQueryScale: [block][s][pair][part] is element 32 block + 8 part + s.
template <int kPairs>
using Queries = double[8][kPairs][4];
/// Their magnitudes in 16 bits, scaled: [block][pair][part], elements 32 block + 8 part and on.
template <int kPairs>
using Magnitudes = uint4[kPairs][4];

/**
 * Scores of the warp's eight keys, one of whose rows `k` is: that of key lane / 4, from element
 * 8 (lane % 4) on, of `k_dims` elements. `value`, `magnitude`: of pair lane / 4 and keys
 * 2 (lane % 4) and the next. With four pairs the lower half of the MMA's rows repeats the upper one.
 * `magnitude` is still scaled as the queries' magnitudes are; behind those of the pair stands
 * sum |k_i| of the keys.
 */
template <int kPairs, int kBlocks, bool kBf16>
__device__ inline void scores(const Decoder &decoder, const Queries<kPairs> *queries,
                              const Magnitudes<kPairs> *magnitudes, const unsigned char *k,
                              int k_dims, double (&value)[2], float (&magnitude)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const double *q = &queries[0][0][lane / 4 % kPairs][lane % 4];
  const uint4 *sizes = &magnitudes[0][lane / 4 % kPairs][lane % 4];
  double sums[4][2] = {};
  for (float &sum : magnitude)
    sum = 0.0f;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    if (32 * block >= k_dims) break; // what lies behind the key counts in sum |k_i|
    const uint4 four = *reinterpret_cast<const uint4 *>(k + 64 * block);
    const uint4 size = sizes[block * kPairs * 4];
    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
    const uint32_t a[2][2] = {{size.x, size.y}, {size.z, size.w}};
#pragma unroll
    for (int half = 0; half < 2; ++half)
      multiply16<kBf16>(magnitude, a[half], words[2 * half] & 0x7FFF7FFFu,
                        words[2 * half + 1] & 0x7FFF7FFFu);
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      const uint32_t top = s % 2 ? words[s / 2] : words[s / 2] << 16;
      multiply(sums[s % 4], q[(block * 8 + s) * kPairs * 4],
               Decoder::with_sign(decoder.magnitude(top), top));
    }
  }
  for (int e = 0; e < 2; ++e)
    value[e] = ((sums[0][e] + sums[1][e]) + (sums[2][e] + sums[3][e])) * decoder.score_scale();
}

} // namespace assay::oracle::device
