// SPDX-License-Identifier: Apache-2.0
// Internal: lanes of a warp as those who work on a tile or a state together (replay_tiles.h).
#pragma once

#include <cstdint>

namespace assay::oracle::device {

/** Lanes of a warp that follow each other, as a part of a block. */
template <int kLanes>
struct LanesOf {
  __device__ static int rank() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int size() { return kLanes; }
  __device__ static int number() { return static_cast<int>(threadIdx.x) / kLanes; }
  __device__ static int count() { return static_cast<int>(blockDim.x) / kLanes; }
  /// The lanes themselves: others of the warp may be elsewhere.
  __device__ static unsigned mask() {
    return ~0u >> (32 - kLanes) << (threadIdx.x % 32 / kLanes * kLanes);
  }
  __device__ static void sync() { __syncwarp(mask()); }
  __device__ static double most(double x) {
    for (int step = kLanes / 2; step > 0; step /= 2)
      x = fmax(x, __shfl_xor_sync(mask(), x, step));
    return x;
  }
  __device__ static double sum(double x) {
    for (int step = kLanes / 2; step > 0; step /= 2)
      x += __shfl_xor_sync(mask(), x, step);
    return x;
  }
  __device__ static double most_to(double x) {
    for (int step = 1; step < kLanes; step *= 2) {
      const double other = __shfl_up_sync(mask(), x, step, kLanes);
      if (rank() >= step) x = fmax(x, other);
    }
    return x;
  }
  __device__ static int64_t sum_to(int64_t x) {
    for (int step = 1; step < kLanes; step *= 2) {
      const int64_t other = __shfl_up_sync(mask(), x, step, kLanes);
      if (rank() >= step) x += other;
    }
    return x;
  }
  __device__ static double before(double x, double other) {
    const double left = __shfl_up_sync(mask(), x, 1, kLanes);
    return rank() == 0 ? other : left;
  }
  template <class T>
  __device__ static T last(T x) {
    return __shfl_sync(mask(), x, kLanes - 1, kLanes);
  }
};

} // namespace assay::oracle::device
