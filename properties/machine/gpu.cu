// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "properties/machine/counted_values.h"
#include "properties/machine/machine.h"

namespace assay {
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

__global__ void poison(const __grid_constant__ CacheFill fill, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    store_bits(fill, i, fill.poison);
}

/// A warp a token and head.
__global__ void fill_pages(const __grid_constant__ CacheFill fill) {
  const int lane = static_cast<int>(threadIdx.x), warp = static_cast<int>(threadIdx.y);
  for (int64_t page = blockIdx.x; page < fill.pages; page += gridDim.x)
    for (int at = warp; at < fill.page_size * fill.heads; at += static_cast<int>(blockDim.y))
      fill_token(fill, page, at / fill.heads, at % fill.heads, lane, 32);
}

class Gpu final : public Machine {
public:
  ~Gpu() override {
    for (void *block : blocks_)
      cudaFree(block);
  }
  assay_target target() const override { return ASSAY_TARGET_CUDA; }
  uint64_t free_bytes() const override {
    size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "memory");
    return free;
  }
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
  void fill_cache(const CacheFill &fill) override {
    poison<<<4096, 256>>>(fill, fill.elements());
    fill_pages<<<8192, dim3(32, 8)>>>(fill);
    require(cudaGetLastError(), "filling");
  }
  void finish() override { require(cudaDeviceSynchronize(), "the device"); }
  oracle::Memory memory() const override {
    return oracle::Memory([](void *to, const void *from, size_t bytes, size_t pitch, size_t rows) {
      require(cudaMemcpy2D(to, bytes, from, pitch, bytes, rows, cudaMemcpyDefault), "reading");
    });
  }

  std::string refuses(const oracle::AttentionRows &rows,
                      const oracle::KernelModel &model) const override {
    return oracle::tiers_refuse(rows, model);
  }
  oracle::TierReport judge(const oracle::AttentionRows &rows, const oracle::CallOutputs &outputs,
                           const oracle::KernelModel &model,
                           const oracle::JudgeOptions &options) override {
    return tiers_.judge(rows, outputs, model, nullptr, options);
  }
  oracle::TierReport judge_merges(const oracle::MergeRows &rows, const oracle::CallOutputs &outputs,
                                  const oracle::KernelModel &model) override {
    return merges_.judge(rows, outputs, model);
  }

private:
  std::vector<void *> blocks_;
  oracle::TierJudge tiers_;
  oracle::MergeJudge merges_;
};

} // namespace

std::unique_ptr<Machine> make_gpu() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return nullptr;
  return std::make_unique<Gpu>();
}

} // namespace assay
