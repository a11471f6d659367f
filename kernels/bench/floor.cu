// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/floor.cuh"

#include <iterator>

namespace assay::bench {
namespace {

/// An early start may run ahead by what is in flight, as a decode kernel's rings do. By no more:
/// small grids would all be resident at once, and the third reads what the first just brought.
__device__ void wait_for_previous_read() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ uint4 load_once(const uint4 *from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ void mix(uint4 &into, const uint4 &v) {
  into.x ^= v.x;
  into.y ^= v.y;
  into.z ^= v.z;
  into.w ^= v.w;
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
      v[u] = load_once(data + i + u * stride);
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

/// Thread t has part t / step of the states of vectors t % step, t % step + step, ...
template <int kOutputs, int kDepth>
__global__ void merge_floor(MergeFloor merge, uint32_t parts, const uint4 *in, uint4 *out,
                            uint32_t *sink) {
  const uint32_t vectors = merge.rows * merge.row, step = (vectors + kOutputs - 1) / kOutputs;
  const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, part = t / step;
  if (part >= parts) return;
  const uint4 *from[kOutputs];
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) { // past the end: the last vector again
    const uint32_t i = min(t % step + o * step, vectors - 1);
    from[o] = in + uint64_t{i / merge.row} * merge.states * merge.row + i % merge.row;
  }
  uint4 acc[kOutputs] = {};
  const uint32_t share = (merge.states + parts - 1) / parts, first = part * share;
  const uint32_t last = min(first + share, merge.states);
  uint32_t s = first;
  for (; s + kDepth <= last; s += kDepth) {
    uint4 v[kOutputs][kDepth];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o)
#pragma unroll
      for (int u = 0; u < kDepth; ++u)
        v[o][u] = load_once(from[o] + uint64_t{s + u} * merge.row);
#pragma unroll
    for (int o = 0; o < kOutputs; ++o)
#pragma unroll
      for (int u = 0; u < kDepth; ++u)
        mix(acc[o], v[o][u]);
  }
  for (; s < last; ++s) {
#pragma unroll
    for (int o = 0; o < kOutputs; ++o)
      mix(acc[o], load_once(from[o] + uint64_t{s} * merge.row));
  }
#pragma unroll
  for (int o = 0; o < kOutputs; ++o)
    if (part > 0) {
      if ((acc[o].x ^ acc[o].y ^ acc[o].z ^ acc[o].w) == 0x9e3779b9u) *sink = acc[o].x;
    } else if (t + o * step < vectors) {
      out[t + o * step] = acc[o];
    }
}

__global__ void do_nothing() {}

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
                   int multiprocessors, bool enable_pdl, cudaStream_t stream) {
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
  config.numAttrs = enable_pdl ? 1 : 0;
  const auto kernel = shape.unroll == 4 ? &read_floor<4> : &read_floor<8>;
  ASSAY_BENCH_CHECK(cudaLaunchKernelEx(&config, kernel, vectors, n, shape.ranges, sink));
}

void enqueue_merge_floor(const MergeFloorShape &shape, const MergeFloor &merge, uint32_t parts,
                         const void *in, void *out, uint32_t *sink, cudaStream_t stream) {
  using Kernel = decltype(&merge_floor<1, 2>);
  struct Row {
    int outputs, depth;
    Kernel kernel;
  };
  static const Row kKernels[] = {{1, 2, &merge_floor<1, 2>}, {2, 2, &merge_floor<2, 2>},
                                 {4, 2, &merge_floor<4, 2>}, {1, 3, &merge_floor<1, 3>},
                                 {2, 3, &merge_floor<2, 3>}, {1, 8, &merge_floor<1, 8>},
                                 {2, 4, &merge_floor<2, 4>}};
  const Row *row = std::find_if(std::begin(kKernels), std::end(kKernels), [&](const Row &r) {
    return r.outputs == shape.outputs && r.depth == shape.depth;
  });
  if (row == std::end(kKernels)) throw std::logic_error("floor: no such shape of a merge");
  const uint64_t vectors = uint64_t{merge.rows} * merge.row;
  const uint64_t threads = (vectors + shape.outputs - 1) / shape.outputs * parts;
  const auto blocks = static_cast<unsigned>((threads + shape.threads - 1) / shape.threads);
  row->kernel<<<blocks, shape.threads, 0, stream>>>(merge, parts, static_cast<const uint4 *>(in),
                                                    static_cast<uint4 *>(out), sink);
  ASSAY_BENCH_CHECK(cudaGetLastError());
}

void enqueue_empty(cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  ASSAY_BENCH_CHECK(cudaLaunchKernelEx(&config, do_nothing));
}

void fill_bf16(uint16_t *data, uint64_t n, uint64_t seed, cudaStream_t stream) {
  fill<<<1056, 256, 0, stream>>>(data, n, seed);
  ASSAY_BENCH_CHECK(cudaGetLastError());
}

void fill_cache(void *data, uint64_t bytes, KvDtype dtype, cudaStream_t stream) {
  fill_bf16(static_cast<uint16_t *>(data), bytes / 2, 1, stream);
  if (bytes_of(dtype) != 1) return;
  mask<<<1056, 256, 0, stream>>>(static_cast<uint32_t *>(data), bytes / 4, 0xbfbfbfbfu);
  ASSAY_BENCH_CHECK(cudaGetLastError());
}

} // namespace assay::bench
