// SPDX-License-Identifier: Apache-2.0
// Internal: one pass over keys and values for pairs about which nothing is special. Sums of
// |v - c| are taken around c, the output as it was written: whatever that is, the bounds hold, and
// where it is right they are as tight as those around the exact one (oracle/BOUNDS.md, section 7).
#pragma once

#include "oracle/device/plain_weights.cuh"

namespace assay::oracle::device {

/// Sums over keys of 16 components of V, as MMAs leave them: rows lane / 4 and 8 more.
template <int kPairs>
struct PlainValues {
  static constexpr int kSides = kPairs / 4;
  double value[4] = {};
  float magnitude[kSides][4] = {}; ///< of coefficients' parts, pairs behind one another
  float error[kSides][4] = {};
  float around[kPairs][4] = {}; ///< columns 0, 1: error parts; 2, 3: weight parts
  uint32_t center[kPairs][2];   ///< of rows lane / 4 and 8 more, twice each
  uint32_t largest[2] = {};

  __device__ void start(const Call &call, const Unit &unit) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    for (int index = 0; index < kPairs; ++index)
      for (int row = 0; row < 2; ++row) {
        uint32_t bits = 0;
        if (index < unit.pairs) {
          const Pair pair = pair_of(call, unit.work, unit.kv_head, unit.first_pair + index);
          bits = __bfloat16_as_ushort(plain_center(call, pair, 16 * warp + lane / 4 + 8 * row));
        }
        center[index][row] = bits | bits << 16;
      }
  }

  __device__ void add(const PlainMemory<kPairs> &memory, const unsigned char *values) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4, t = lane % 4;
    const auto *v =
        values + (lane / 16 * 8 + lane % 8) * kPlainValuePitch + 32 * warp + lane / 8 % 2 * 16;
    const auto *parts = &memory.parts[0][0][0];
    constexpr int kPitch = PlainMemory<kPairs>::kPartPitch, kKind = kPairs * kPitch;
    // Rows of a B operand: parts and pairs; 16 or 32 keys.
    const int row = lane % 8, column = lane / 8 * 8;
    const int sum_row = kPairs == 4 ? row / 4 * kKind + row % 4 * kPitch : row * kPitch;
    const int around_row = (kErrorParts + row % 4) * kKind;
#pragma unroll
    for (int pass = 0; pass < kTileKeys / 32; ++pass) {
      uint32_t words[2][4];
      load_transposed(words[0], v + 32 * pass * kPlainValuePitch);
      load_transposed(words[1], v + (32 * pass + 16) * kPlainValuePitch);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const double *w = &memory.weights[g % kPairs][32 * pass + 16 * k + 2 * t];
        const double2 first = *reinterpret_cast<const double2 *>(w);
        const double2 second = *reinterpret_cast<const double2 *>(w + 8);
        multiply8(value, words[k][0], words[k][1], first.x, first.y);
        multiply8(value, words[k][2], words[k][3], second.x, second.y);
      }
      uint32_t sizes[2][4];
#pragma unroll
      for (int k = 0; k < 2; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sizes[k][i] = words[k][i] & 0x7FFF7FFFu;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        largest[i] = __vimax3_s16x2(largest[i], sizes[0][i], sizes[0][i + 2]);
        largest[i] = __vimax3_s16x2(largest[i], sizes[1][i], sizes[1][i + 2]);
      }
#pragma unroll
      for (int side = 0; side < kSides; ++side) {
        uint32_t b[4];
        load_rows(b, parts + kMagnitudeParts * kKind + side * kKind + sum_row + 32 * pass + column);
        multiply_parts(magnitude[kSides == 1 ? 0 : side], sizes[0], b[0], b[1]);
        multiply_parts(magnitude[kSides == 1 ? 0 : side], sizes[1], b[2], b[3]);
        load_rows(b, parts + kErrorParts * kKind + side * kKind + sum_row + 32 * pass + column);
        multiply_parts(error[kSides == 1 ? 0 : side], words[0], b[0], b[1]);
        multiply_parts(error[kSides == 1 ? 0 : side], words[1], b[2], b[3]);
      }
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        uint32_t b[4], most[4];
        load_rows(b, parts + around_row + pair * kPitch + 32 * pass + column);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            most[i] = larger_of(words[k][i], center[pair][i % 2]);
          multiply_parts(around[pair], most, b[2 * k], b[2 * k + 1]);
        }
      }
    }
  }

  __device__ void store(const Call &call, const Unit &unit) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4, t = lane % 4;
    PlainComponent *out = call.plain_components + unit.id * kPairs * kPlainDim + 16 * warp + g;
    const double unscale = ldexp(1.0, Decoder(true).exponent - kWeightScale);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float size = magnitude[0][e], wrong = error[0][e];
      if constexpr (kSides == 1) {
        size += __shfl_xor_sync(~0u, size, 2);
        wrong += __shfl_xor_sync(~0u, wrong, 2);
      } else {
        size += magnitude[1][e];
        wrong += error[1][e];
      }
      const int index = 2 * t + e % 2;
      if (index >= unit.pairs) continue;
      PlainComponent &to = out[index * kPlainDim + e / 2 * 8];
      to.value = value[e] * unscale;
      to.magnitude = size;
      to.error = wrong;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint32_t most = largest[i];
      most = __vimax3_s16x2(most, __shfl_xor_sync(~0u, most, 1), 0);
      most = __vimax3_s16x2(most, __shfl_xor_sync(~0u, most, 2), 0);
      const float number = __uint_as_float(max(most & 0xFFFF, most >> 16) << 16);
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        if (pair >= unit.pairs || t > 1) continue;
        PlainComponent &to = out[pair * kPlainDim + 8 * i];
        const float sum = around[pair][2 * i] + around[pair][2 * i + 1];
        if (t == 0) {
          to.error_around = sum;
          to.largest = number;
        } else {
          to.weight_around = sum;
        }
      }
    }
  }
};

template <int kPairs>
__global__ void __launch_bounds__(kThreads, kPairs == 4 ? 2 : 1)
    plain_pass(const __grid_constant__ Call call) {
  extern __shared__ __align__(128) unsigned char shared[];
  PlainLoop<kPairs> loop(call, shared);
  loop.start();
  PlainWeights<kPairs> weights(loop);
  PlainValues<kPairs> values;
  values.start(call, loop.unit);
  const int count = loop.tiles_of_unit();
  for (int number = 0; number < count; ++number) {
    loop.tiles.arrive(number);
    if (loop.tiles.fp8 && number + 1 < count)
      loop.tiles.load(call, loop.memory.places[(number + 1) % 2], number + 1);
    __syncthreads();
    if (number + 1 < count) {
      if (!loop.tiles.fp8) loop.tiles.load(call, loop.memory.places[(number + 1) % 2], number + 1);
      loop.place(number + 2);
      loop.find_run(number + 3);
    }
    loop.score(number);
    __syncthreads();
    weights.add(number);
    __syncthreads();
    values.add(loop.memory, loop.tiles.values(number));
  }
  weights.store();
  values.store(call, loop.unit);
}

} // namespace assay::oracle::device
