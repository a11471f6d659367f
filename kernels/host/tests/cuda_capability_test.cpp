// SPDX-License-Identifier: Apache-2.0
// On a device: asking what it is leaves no driver behind, and has an answer beside one.
#include "kernels/host/asked_apart.h"
#include "kernels/host/device_info.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr std::chrono::milliseconds kPatience{60'000};

int set_up_driver() { return cudaFree(nullptr) == cudaSuccess ? 1 : 0; }

int capability() {
  int devices = 0;
  cudaDeviceProp device{};
  if (cudaGetDeviceCount(&devices) != cudaSuccess) return 0;
  return cudaGetDeviceProperties(&device, 0) == cudaSuccess ? 10 * device.major + device.minor : 0;
}

int capability_beside_driver() {
  return set_up_driver() != 0 ? asked_apart_or_here(&capability, kPatience) : 0;
}

TEST(CudaCapability, IsThatOfTheDeviceAndLeavesNoDriver) {
  const int asked = cuda_capability();
  if (asked == 0) GTEST_SKIP() << "no CUDA device, or devices that differ";
  EXPECT_EQ(asked_apart(&set_up_driver, kPatience), 1);
  EXPECT_EQ(asked_apart(&capability, kPatience), asked);
  EXPECT_EQ(asked_apart(&capability_beside_driver, kPatience), asked);
}

} // namespace
} // namespace assay
