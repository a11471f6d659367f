// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/floor.cuh"

namespace assay::bench {
namespace {

/// An early start may run ahead by what is in flight, as a decode kernel's rings do. By no more:
/// small grids would all be resident at once, and the third reads what the first just brought.
__device__ void wait_for_previous_read() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <int kUnroll>
__global__ void read_floor(const uint4 *data, uint64_t n, bool ranges, uint32_t *sink) {
  uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (ranges) {
    const uint64_t share = (n + gridDim.x - 1) / gridDim.x;
    stride = blockDim.x;
    i = blockIdx.x * share + threadIdx.x;
    n = min(n, (blockIdx.x + 1) * share);
  }
  uint32_t acc = 0;
  bool waited = false;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  for (; i + (kUnroll - 1) * stride < n; i += kUnroll * stride) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                   : "l"(data + i + u * stride));
    if (!waited) wait_for_previous_read();
    waited = true;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      acc ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  if (!waited) wait_for_previous_read();
  for (; i < n; i += stride) {
    const uint4 v = __ldg(data + i);
    acc ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (acc == 0x9e3779b9u) *sink = acc;
}

__global__ void fill(uint16_t *data, uint64_t n, uint64_t seed) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    uint64_t x = i * 0x9e3779b97f4a7c15ull + seed; // splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    const float f = static_cast<int32_t>(x >> 32) * 0x1p-31f;
    data[i] = static_cast<uint16_t>(__float_as_uint(f) >> 16);
  }
}

__global__ void mask(uint32_t *data, uint64_t n, uint32_t bits) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
    data[i] &= bits;
}

} // namespace

void enqueue_floor(const FloorShape &shape, const void *data, uint64_t bytes, uint32_t *sink,
                   int multiprocessors, bool early_start, cudaStream_t stream) {
  const auto *vectors = static_cast<const uint4 *>(data);
  const uint64_t n = bytes / sizeof(uint4);
  const uint64_t full = (n + shape.threads - 1) / shape.threads;
  const auto blocks = static_cast<unsigned>(
      std::min<uint64_t>(full, uint64_t(multiprocessors) * shape.blocks_per_sm));
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early_start ? 1 : 0;
  const auto kernel = shape.unroll == 4 ? &read_floor<4> : &read_floor<8>;
  ASSAY_BENCH_CHECK(cudaLaunchKernelEx(&config, kernel, vectors, n, shape.ranges, sink));
}

void fill_bf16(uint16_t *data, uint64_t n, uint64_t seed, cudaStream_t stream) {
  fill<<<1056, 256, 0, stream>>>(data, n, seed);
  ASSAY_BENCH_CHECK(cudaGetLastError());
}

void mask_words(void *data, uint64_t bytes, uint32_t bits, cudaStream_t stream) {
  mask<<<1056, 256, 0, stream>>>(static_cast<uint32_t *>(data), bytes / 4, bits);
  ASSAY_BENCH_CHECK(cudaGetLastError());
}

} // namespace assay::bench
