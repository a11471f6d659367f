// SPDX-License-Identifier: Apache-2.0
// Runs a small kernel (a functor) on the target that this file is compiled for. The bodies of tests
// are compiled for both targets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/arch/target.cuh"
#if !ASSAY_IS_CUDA
#include "kernels/simt/launch.h"
#endif

namespace assay::ASSAY_TARGET::arch_test {

struct Shape {
  uint32_t blocks = 1;
  uint32_t threads = 32;
  size_t shared_bytes = 0;
  uint32_t cluster = 1; // blocks
};

#if ASSAY_IS_CUDA

#define ASSAY_ARCH_SUITE ArchCuda

template <class Kernel>
__global__ void run_functor(const ASSAY_GRID_CONSTANT Kernel kernel) {
  kernel();
}

class Device {
public:
  // Empty when a device can be used.
  static std::string missing() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return cudaGetErrorString(status);
    return count == 0 ? "no CUDA device" : "";
  }
  Device() = default;
  Device(const Device &) = delete;
  ~Device() {
    for (void *p : allocations_)
      cudaFree(p);
  }
  template <class T>
  T *upload(const std::vector<T> &values) {
    void *p = nullptr;
    check(cudaMalloc(&p, values.size() * sizeof(T)));
    allocations_.push_back(p);
    check(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return static_cast<T *>(p);
  }
  template <class T>
  std::vector<T> download(const T *p, size_t count) {
    std::vector<T> values(count);
    check(cudaMemcpy(values.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  template <class Kernel>
  void run(const Shape &shape, Kernel kernel) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = shape.cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(shape.blocks);
    config.blockDim = dim3(shape.threads);
    config.dynamicSmemBytes = shape.shared_bytes;
    config.attrs = &cluster;
    config.numAttrs = shape.cluster > 1 ? 1 : 0;
    check(cudaLaunchKernelEx(&config, run_functor<Kernel>, kernel));
    check(cudaDeviceSynchronize());
  }

private:
  static void check(cudaError_t status) {
    if (status != cudaSuccess) ADD_FAILURE() << cudaGetErrorString(status);
  }
  std::vector<void *> allocations_;
};

#else

#define ASSAY_ARCH_SUITE ArchSimt

class Device {
public:
  static std::string missing() { return ""; }
  template <class T>
  T *upload(const std::vector<T> &values) {
    void *p = stream_.memory.allocate(values.size() * sizeof(T), simt::Access::kReadWrite,
                                      simt::InitState::kDefined, "upload");
    std::memcpy(p, values.data(), values.size() * sizeof(T));
    return static_cast<T *>(p);
  }
  template <class T>
  std::vector<T> download(const T *p, size_t count) {
    return std::vector<T>(p, p + count);
  }
  // Each run takes the next schedule: results must not depend on it.
  template <class Kernel>
  void run(const Shape &shape, Kernel kernel) {
    simt::LaunchConfig config;
    config.grid_x = shape.blocks;
    config.block = shape.threads;
    config.shared_bytes = shape.shared_bytes;
    config.cluster = shape.cluster;
    stream_.schedule = next_schedule();
    const simt::LaunchStatus status = simt::launch(&stream_, config, [&] { kernel(); });
    if (status != simt::LaunchStatus::kOk) ADD_FAILURE() << stream_.hazards.back().message;
    stream_.memory.check_red_zones(stream_.hazards);
    EXPECT_TRUE(stream_.hazards.empty());
  }

private:
  static simt::Schedule next_schedule() {
    static uint64_t count = 0;
    simt::Schedule schedule;
    schedule.seed = ++count;
    schedule.order = static_cast<simt::Order>(count % 3);
    schedule.copies = static_cast<simt::CopyCompletion>(count / 3 % 3);
    return schedule;
  }
  simt::Stream stream_;
};

#endif

// Random bits that a counter makes, so that both targets get the same inputs.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int between(int low, int high) { // inclusive
    return low + static_cast<int>(bits() % static_cast<uint64_t>(high - low + 1));
  }

private:
  uint64_t state_;
};

} // namespace assay::ASSAY_TARGET::arch_test

#define ASSAY_ARCH_TEST_NAMED(suite, name, repeats)                                                \
  static void name##_body();                                                                       \
  TEST(suite, name) {                                                                              \
    const std::string missing = Device::missing();                                                 \
    if (!missing.empty()) GTEST_SKIP() << "no CUDA device to run on: " << missing;                 \
    for (int repeat = 0; repeat < (ASSAY_IS_CUDA ? 1 : repeats); ++repeat)                         \
      name##_body();                                                                               \
  }                                                                                                \
  static void name##_body()
#define ASSAY_ARCH_TEST_EXPAND(suite, name, repeats) ASSAY_ARCH_TEST_NAMED(suite, name, repeats)
// On simt every body runs nine times, so that each order meets each completion of copies.
#define ASSAY_ARCH_TEST(name) ASSAY_ARCH_TEST_EXPAND(ASSAY_ARCH_SUITE, name, 9)
// For bodies whose threads do not wait for each other.
#define ASSAY_ARCH_TEST_ONCE(name) ASSAY_ARCH_TEST_EXPAND(ASSAY_ARCH_SUITE, name, 1)
