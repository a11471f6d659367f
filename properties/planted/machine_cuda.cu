// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "properties/planted/machine.h"
#include "properties/planted/values.h"

namespace assay::planted {
namespace {

void require(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

template <class Bits>
__global__ void fill(Bits *to, size_t count, uint64_t seed) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = static_cast<Bits>(element_bits(seed + i, sizeof(Bits) == 1));
}

class Gpu final : public Machine {
public:
  ~Gpu() override {
    for (void *block : blocks_)
      cudaFree(block);
  }
  assay_target target() const override { return ASSAY_TARGET_CUDA; }
  void *allocate(size_t bytes) override {
    void *block = nullptr;
    require(cudaMalloc(&block, bytes), "memory");
    blocks_.push_back(block);
    return block;
  }
  void copy(void *to, const void *from, size_t bytes) override {
    require(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copying");
  }
  void fill_elements(void *to, size_t count, bool fp8, uint64_t seed) override {
    if (fp8)
      fill<<<4096, 256>>>(static_cast<uint8_t *>(to), count, seed);
    else
      fill<<<4096, 256>>>(static_cast<uint16_t *>(to), count, seed);
    require(cudaGetLastError(), "filling");
  }
  void finish() override { require(cudaDeviceSynchronize(), "the device"); }
  oracle::Memory memory() const override {
    return oracle::Memory([](void *to, const void *from, size_t bytes, size_t pitch, size_t rows) {
      require(cudaMemcpy2D(to, bytes, from, pitch, bytes, rows, cudaMemcpyDefault), "reading");
    });
  }

  std::vector<oracle::RowHead> open_of_first(const oracle::AttentionRows &rows,
                                             const oracle::CallOutputs &outputs,
                                             const oracle::KernelModel &model) override {
    return std::move(passes_.judge(rows, outputs, model).open);
  }
  std::vector<oracle::RowHead> open_of_every(const oracle::AttentionRows &rows,
                                             const oracle::CallOutputs &outputs,
                                             const oracle::KernelModel &model) override {
    return std::move(tiers_.judge(rows, outputs, model).open);
  }
  std::vector<oracle::RowHead> open_of_merges(const oracle::MergeRows &rows,
                                              const oracle::CallOutputs &outputs,
                                              const oracle::KernelModel &model) override {
    return std::move(merges_.judge(rows, outputs, model).open);
  }
  std::vector<oracle::BulkElement> exact(const oracle::AttentionRows &rows,
                                         const oracle::CallOutputs &outputs,
                                         const oracle::KernelModel &model) override {
    std::vector<oracle::BulkElement> elements;
    passes_.judge(rows, outputs, model, nullptr, &elements);
    return elements;
  }

private:
  std::vector<void *> blocks_;
  oracle::BulkJudge passes_;
  oracle::TierJudge tiers_;
  oracle::MergeJudge merges_;
};

} // namespace

std::unique_ptr<Machine> make_machine() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return nullptr;
  return std::make_unique<Gpu>();
}

} // namespace assay::planted
