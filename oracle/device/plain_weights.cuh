// SPDX-License-Identifier: Apache-2.0
// Internal: from scores to weights, and to the coefficients of the sums over V.
#pragma once

#include "oracle/device/plain_loop.cuh"

namespace assay::oracle::device {

/// The largest of doubles that are not negative, as their upper halves; NaN is above all.
struct UpperWord {
  uint32_t most = 0;
  __device__ void take(double x) {
    most = max(most, static_cast<uint32_t>(__double2hiint(x)) & 0x7FFFFFFFu);
  }
  __device__ static double limit(uint32_t most) {
    return __hiloint2double(static_cast<int>(most), -1);
  }
};

__device__ inline unsigned short upper_half(float x) {
  return static_cast<unsigned short>(__float_as_uint(x) >> 16);
}
/// hi + lo >= x >= 0, and at most 2^-14 of it above.
__device__ inline void split_up(double x, unsigned short *hi, unsigned short *lo) {
  const float all = __double2float_ru(x), top = __uint_as_float(__float_as_uint(all) & 0xFFFF0000u);
  *hi = upper_half(all);
  *lo = static_cast<unsigned short>((__float_as_uint(all - top) + 0xFFFFu) >> 16);
}
/// |hi + lo - x| <= 2^-16 x, but for what fp32 cannot hold.
__device__ inline void split_near(double x, unsigned short *hi, unsigned short *lo) {
  const float all = __double2float_rn(x), top = __uint_as_float(__float_as_uint(all) & 0xFFFF0000u);
  *hi = upper_half(all);
  *lo = __bfloat16_as_ushort(__float2bfloat16_rn(all - top));
}

/// What a thread has seen of the keys of its pair.
struct PlainThread {
  double z = 0.0, mean = 0.0, low = 0.0;
  float x_max = -INFINITY, x_min = INFINITY; ///< less the top
  UpperWord x_abs, error;
};

/// Weights of the keys that a thread looks at, and what they come to.
template <int kPairs>
struct PlainWeights {
  using Loop = PlainLoop<kPairs>;
  Loop &loop;
  PlainThread own;

  __device__ explicit PlainWeights(Loop &of) : loop(of) {}

  /// The first tile that a pair sees a key of sets its scale.
  __device__ void find_top(int number) {
    auto &memory = loop.memory;
    const int pair = loop.pair, warp = loop.warp, lane = loop.lane;
    const Unit &unit = loop.unit;
#pragma unroll
    for (int e = 0; e < Loop::kKeysEach; ++e) {
      const int key = kPairs == 4 ? warp % 2 * 32 + lane : lane + 32 * e;
      const double x =
          memory.pairs[pair].scale * (memory.scores[0][pair][key] + memory.scores[1][pair][key]);
      if (loop.sees(number, key) && fabs(x) < 0x1p29)
        atomicMax(&memory.found[pair], static_cast<int>(ceil(x)));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      memory.unset = 0;
      for (int i = 0; i < unit.pairs; ++i) {
        if (memory.top[i] == Loop::kNoTop) memory.top[i] = memory.found[i];
        if (memory.top[i] == Loop::kNoTop) memory.unset = 1;
      }
    }
    __syncthreads();
  }

  /// Weights of the thread's keys and the coefficients of the sums over V.
  __device__ void add(int number) {
    auto &memory = loop.memory;
    const int pair = loop.pair, warp = loop.warp, lane = loop.lane;
    if (loop.memory.unset != 0) find_top(number);
    const PlainPair &p = memory.pairs[pair];
    const double top = memory.top[pair];
#pragma unroll
    for (int e = 0; e < Loop::kKeysEach; ++e) {
      const int key = kPairs == 4 ? warp % 2 * 32 + lane : lane + 32 * e;
      double w = 0.0, b = 0.0;
      if (loop.sees(number, key)) {
        const double x = p.scale * (memory.scores[0][pair][key] + memory.scores[1][pair][key]);
        const double size = memory.sizes[0][pair][key] + memory.sizes[1][pair][key];
        const double key_size = memory.key_sizes[0][key] + memory.key_sizes[1][key];
        const double s =
            fma(p.by_size, size, fma(p.by_x, fabs(x), fma(p.by_key, key_size, p.constant)));
        const double below = top - x, y = fmax(fma(p.g, s, p.h * below), 0.0);
        const double omega = y * fma(y, fma(y, 0.25, 0.5), 1.0); // >= e^y - 1 up to y = 1
        w = exp2(-below);
        b = w * omega;
        own.z += w;
        own.mean += b;
        own.low += w - b * fma(omega, omega - 1.0, 1.0); // <= w / (1 + omega)
        const float d = __double2float_ru(-below);
        own.x_max = fmaxf(own.x_max, d);
        own.x_min = fminf(own.x_min, d);
        own.x_abs.take(x);
        own.error.take(s);
      }
      memory.weights[pair][key] = w * 0x1p800;
      auto *parts = &memory.parts[0][pair][key];
      constexpr int kStep = kPairs * PlainMemory<kPairs>::kPartPitch;
      split_up(w + b, parts + kMagnitudeParts * kStep, parts + (kMagnitudeParts + 1) * kStep);
      split_near(b, parts + kErrorParts * kStep, parts + (kErrorParts + 1) * kStep);
      split_near(w, parts + kWeightParts * kStep, parts + (kWeightParts + 1) * kStep);
    }
  }

  /// After the last tile.
  __device__ void store() {
    auto &memory = loop.memory;
    const Unit &unit = loop.unit;
    const int warp = loop.warp, lane = loop.lane;
    const auto add = [](double a, double b) { return a + b; };
    for (int step = 16; step > 0; step /= 2) {
      own.z = add(own.z, __shfl_xor_sync(~0u, own.z, step));
      own.mean = add(own.mean, __shfl_xor_sync(~0u, own.mean, step));
      own.low = add(own.low, __shfl_xor_sync(~0u, own.low, step));
      own.x_max = fmaxf(own.x_max, __shfl_xor_sync(~0u, own.x_max, step));
      own.x_min = fminf(own.x_min, __shfl_xor_sync(~0u, own.x_min, step));
    }
    own.x_abs.most = __reduce_max_sync(~0u, own.x_abs.most);
    own.error.most = __reduce_max_sync(~0u, own.error.most);
    if (lane == 0) {
      memory.reduced[warp][0] = own.z;
      memory.reduced[warp][1] = own.mean;
      memory.reduced[warp][2] = own.low;
      memory.maxima[warp][0] = own.x_max;
      memory.maxima[warp][1] = own.x_min;
      memory.words[warp][0] = own.x_abs.most;
      memory.words[warp][1] = own.error.most;
    }
    __syncthreads();
    const int index = static_cast<int>(threadIdx.x);
    if (index >= unit.pairs) return;
    constexpr int kEach = kWarps / kPairs;
    PlainSums &out = loop.call.plain_sums[unit.id * kPairs + index];
    const double own_top = memory.top[index] == Loop::kNoTop ? 0.0 : memory.top[index];
    out.top = own_top;
    out.z = out.mean = out.low = 0.0;
    float most = -INFINITY, least = INFINITY;
    uint32_t x_abs = 0, error = 0;
    for (int from = index * kEach; from < (index + 1) * kEach; ++from) {
      out.z += memory.reduced[from][0];
      out.mean += memory.reduced[from][1];
      out.low += memory.reduced[from][2];
      most = fmaxf(most, memory.maxima[from][0]);
      least = fminf(least, memory.maxima[from][1]);
      x_abs = max(x_abs, memory.words[from][0]);
      error = max(error, memory.words[from][1]);
    }
    out.above = most;
    out.below = least;
    out.x_abs = UpperWord::limit(x_abs);
    out.x_error = UpperWord::limit(error);
  }
};

} // namespace assay::oracle::device
