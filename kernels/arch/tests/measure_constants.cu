// SPDX-License-Identifier: Apache-2.0
// Measures exp2_approx, log2_approx and rcp_approx over all 2^32 inputs on the current device,
// against double precision (error below 2^-51, counted in no digit printed here). The declared
// arithmetic (kernels/host/arithmetic.h) must not be smaller. Prints one line per function.
#include "kernels/arch/convert.cuh"
#include "kernels/arch/math.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

namespace assay::n_cuda {
namespace {

/// Largest error and an input that has it.
struct Worst {
  double error;
  float at;
};

enum Function { kExp2, kExp2AtMostZero, kLog2, kRcp, kFunctions };

/// Error of one function at x in its contract's unit, or -1 outside the contract: relative, where
/// the exact result is a normal number (exp2, rcp); relative to 1 + |result| (log2).
__device__ double error_at(int function, float x) {
  constexpr double kMinNormal = 0x1p-126;
  if (isnan(x)) return -1;
  switch (function) {
  case kExp2:
  case kExp2AtMostZero: {
    if (function == kExp2AtMostZero && x > 0) return -1;
    const double exact = exp2(static_cast<double>(x));
    if (exact < kMinNormal || exact >= 0x1p128) return -1;
    return fabs(arch::exp2_approx(x) - exact) / exact;
  }
  case kLog2: {
    if (!(x >= static_cast<float>(kMinNormal)) || isinf(x)) return -1;
    const double exact = log2(static_cast<double>(x));
    return fabs(arch::log2_approx(x) - exact) / (1 + fabs(exact));
  }
  default: {
    const double exact = 1 / static_cast<double>(x);
    if (fabs(x) < kMinNormal || isinf(x) || fabs(exact) < kMinNormal) return -1;
    return fabs(arch::rcp_approx(x) - exact) / fabs(exact);
  }
  }
}

__global__ void measure(int function, Worst *block_worst, unsigned long long *inexact_integers) {
  Worst worst = {-1, 0};
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < 1ull << 32; i += stride) {
    const float x = arch::bits_to_float(static_cast<uint32_t>(i));
    const double error = error_at(function, x);
    if (error > worst.error) worst = {error, x};
    if (function == kExp2 && error > 0 && x == rintf(x)) atomicAdd(inexact_integers, 1ull);
  }
  block_worst[blockIdx.x * blockDim.x + threadIdx.x] = worst;
}

int run() {
  constexpr int kBlocks = 1056, kThreads = 256;
  const char *names[kFunctions] = {"exp2, relative", "exp2 of x <= 0, relative",
                                   "log2, over 1 + |log2 x|", "rcp, relative"};
  constexpr size_t kCount = kBlocks * kThreads;
  std::vector<Worst> host(kCount);
  Worst *worst = nullptr;
  unsigned long long *inexact = nullptr, inexact_host = 0;
  if (cudaMalloc(&worst, sizeof(Worst) * kCount) != cudaSuccess ||
      cudaMalloc(&inexact, sizeof *inexact) != cudaSuccess ||
      cudaMemset(inexact, 0, sizeof *inexact) != cudaSuccess) {
    std::fprintf(stderr, "no CUDA device\n");
    return 3;
  }
  for (int f = 0; f < kFunctions; ++f) {
    measure<<<kBlocks, kThreads>>>(f, worst, inexact);
    const cudaError_t e =
        cudaMemcpy(host.data(), worst, sizeof(Worst) * kCount, cudaMemcpyDeviceToHost);
    if (e != cudaSuccess) {
      std::fprintf(stderr, "%s\n", cudaGetErrorString(e));
      return 4;
    }
    Worst all = {-1, 0};
    for (const Worst &w : host)
      if (w.error > all.error) all = w;
    std::printf("%-26s %.4e = 2^%.3f at %.9g\n", names[f], all.error, std::log2(all.error), all.at);
  }
  if (cudaMemcpy(&inexact_host, inexact, sizeof inexact_host, cudaMemcpyDeviceToHost) !=
      cudaSuccess)
    return 4;
  std::printf("exp2 inexact at %llu integers\n", inexact_host);
  return 0;
}

} // namespace
} // namespace assay::n_cuda

int main() { return assay::n_cuda::run(); }
