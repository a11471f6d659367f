// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>

#include "oracle/tests/random_call.h"

namespace assay::oracle::test {

/// Memory that host and device reach.
class ManagedMemory final : public CallMemory {
public:
  ManagedMemory() = default;
  ManagedMemory(const ManagedMemory &) = delete;
  ManagedMemory &operator=(const ManagedMemory &) = delete;
  ~ManagedMemory() override {
    for (void *p : all_)
      cudaFree(p);
  }
  void *allocate(size_t bytes) override {
    void *p = nullptr;
    if (cudaMallocManaged(&p, bytes) != cudaSuccess) throw std::runtime_error("managed memory");
    all_.push_back(p);
    return p;
  }

private:
  std::vector<void *> all_;
};

} // namespace assay::oracle::test
