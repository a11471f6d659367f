// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/late_writer.h"

namespace assay {
namespace {

constexpr int kThreads = 256;
constexpr long long kDelay = 40000; // cycles: about 20 us, longer than a small call takes

__global__ void write_late(std::byte *memory, const std::byte *spare, const LateRange *ranges,
                           int count) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const long long begin = clock64();
  while (clock64() - begin < kDelay) {
  }
  for (int r = 0; r < count; ++r)
    for (size_t i = threadIdx.x; i < ranges[r].bytes; i += kThreads)
      memory[ranges[r].offset + i] = spare[ranges[r].offset + i];
}

__global__ void hide(std::byte *memory, const LateRange *ranges, int count) {
  for (int r = 0; r < count; ++r)
    for (size_t i = threadIdx.x; i < ranges[r].bytes; i += kThreads)
      memory[ranges[r].offset + i] = std::byte{0xFF};
}

} // namespace

cudaError_t enqueue_late_writer(const LateMemory &late, const std::vector<LateRange> &ranges,
                                cudaStream_t stream) {
  auto *list = reinterpret_cast<LateRange *>(late.spare + late.bytes);
  const int count = static_cast<int>(ranges.size());
  cudaError_t error = cudaMemcpyAsync(list, ranges.data(), ranges.size() * sizeof(LateRange),
                                      cudaMemcpyHostToDevice, stream);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(late.spare, late.memory, late.bytes, cudaMemcpyDeviceToDevice, stream);
  if (error != cudaSuccess) return error;
  hide<<<1, kThreads, 0, stream>>>(late.memory, list, count);
  write_late<<<1, kThreads, 0, stream>>>(late.memory, late.spare, list, count);
  return cudaGetLastError();
}

} // namespace assay
