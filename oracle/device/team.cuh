// SPDX-License-Identifier: Apache-2.0
// Internal: a block as a team of threads, and what calls for teams leave.
#pragma once

#include <array>
#include <cstring>

#include "oracle/device/buffer.h"
#include "oracle/device/tiers.h"

namespace assay::oracle::device {

struct LargerOf {
  __device__ double operator()(double a, double b) const { return fmax(a, b); }
};
struct SumOf {
  __device__ double operator()(double a, double b) const { return a + b; }
};

/** A block. */
template <int kThreads>
struct Team {
  static constexpr int kWarps = kThreads / 32;
  double (&parts)[kWarps];

  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return kThreads; }
  __device__ void sync() const { __syncthreads(); }
  __device__ double most(double x) const { return over_team(x, LargerOf{}); }
  __device__ double sum(double x) const { return over_team(x, SumOf{}); }
  __device__ bool any(bool flag) const { return __syncthreads_or(flag ? 1 : 0) != 0; }
  __device__ void count(unsigned long long *at) const { atomicAdd(at, 1ULL); }

private:
  template <class Join>
  __device__ double over_team(double x, Join join) const {
    for (int step = 16; step > 0; step /= 2)
      x = join(x, __shfl_xor_sync(~0u, x, step));
    __syncthreads(); // what an earlier one left has been read
    if (rank() % 32 == 0) parts[rank() / 32] = x;
    __syncthreads();
    double all = parts[0];
    for (int warp = 1; warp < kWarps; ++warp)
      all = join(all, parts[warp]);
    return all;
  }
};

/** Memory of the host that copies do not wait for, grown and kept. */
class Staging {
public:
  Staging() = default;
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;
  ~Staging() { cudaFreeHost(data_); }
  unsigned char *reserve(size_t bytes) {
    if (bytes > bytes_) {
      cudaFreeHost(data_);
      data_ = nullptr;
      bytes_ = 0;
      require(cudaMallocHost(&data_, bytes + bytes / 2), "memory of the host");
      bytes_ = bytes + bytes / 2;
    }
    return static_cast<unsigned char *>(data_);
  }

private:
  void *data_ = nullptr;
  size_t bytes_ = 0;
};

/** A call's arrays on the device, in one copy. */
class PackedArrays {
public:
  /** `make(place)` makes the call; it is asked twice. */
  template <class Make>
  auto upload(Make make, cudaStream_t stream) {
    size_t bytes = 0;
    (void)make([&](const void *, size_t size) {
      bytes += up(size);
      return static_cast<const void *>(nullptr);
    });
    unsigned char *host = staging_.reserve(bytes);
    auto *device = device_.roomy<unsigned char>(bytes);
    size_t at = 0;
    auto call = make([&](const void *data, size_t size) {
      if (size > 0) std::memcpy(host + at, data, size);
      const void *placed = device + at;
      at += up(size);
      return placed;
    });
    require(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream),
            "copy to the device");
    return call;
  }

private:
  static size_t up(size_t bytes) { return (bytes + 15) / 16 * 16; }

  Staging staging_;
  Buffer device_;
};

/** What teams leave of a call, and when. */
class TeamResults {
public:
  TeamResults() {
    require(cudaEventCreate(&before_), "event");
    require(cudaEventCreate(&after_), "event");
  }
  TeamResults(const TeamResults &) = delete;
  TeamResults &operator=(const TeamResults &) = delete;
  ~TeamResults() {
    cudaEventDestroy(before_);
    cudaEventDestroy(after_);
  }

  /** `launch(call)` between places for results and their way back. */
  template <class Call, class Launch>
  TierReport of(Call call, const RowOutputs &out, bool has_lse, bool elements, cudaStream_t stream,
                Launch launch) {
    const auto pairs = static_cast<size_t>(call.pairs);
    const size_t row_bytes = pairs * sizeof(TierRow);
    const size_t bytes = row_bytes + BudgetSizes::kCounts * sizeof(uint64_t);
    auto *results = device_.roomy<unsigned char>(bytes);
    call.rows = reinterpret_cast<TierRow *>(results);
    call.budgets = reinterpret_cast<unsigned long long *>(results + row_bytes);
    require(cudaMemsetAsync(call.budgets, 0, bytes - row_bytes, stream), "clearing");
    std::vector<std::array<ElementBounds, 3>> exported;
    if (elements) {
      constexpr ElementBounds kNone{0.0, 0.0, NAN};
      exported.assign(pairs * (static_cast<size_t>(out.dims) + 1), {kNone, kNone, kNone});
      call.elements = elements_.copy(exported, stream)->data();
    }
    require(cudaEventRecord(before_, stream), "event");
    launch(call);
    require(cudaGetLastError(), "launch");
    require(cudaEventRecord(after_, stream), "event");
    unsigned char *host = staging_.reserve(bytes);
    require(cudaMemcpyAsync(host, results, bytes, cudaMemcpyDeviceToHost, stream),
            "copy to the host");
    require(cudaStreamSynchronize(stream), "judging");
    std::vector<TierRow> rows(pairs);
    if (pairs > 0) std::memcpy(rows.data(), host, row_bytes);
    std::vector<uint64_t> budgets(BudgetSizes::kCounts);
    std::memcpy(budgets.data(), host + row_bytes, bytes - row_bytes);
    TierReport report = report_of(out, has_lse, std::move(rows), budgets);
    float ms = 0.0f;
    require(cudaEventElapsedTime(&ms, before_, after_), "time");
    report.device_ms = ms;
    if (elements)
      require(cudaMemcpy(exported.data(), call.elements, exported.size() * sizeof exported[0],
                         cudaMemcpyDeviceToHost),
              "copy to the host");
    report.elements = std::move(exported);
    return report;
  }

private:
  Buffer device_, elements_;
  Staging staging_;
  cudaEvent_t before_ = nullptr, after_ = nullptr;
};

/** Shared memory that a launch may ask for, beside what a kernel has of its own. */
inline size_t dynamic_memory_of_block() {
  constexpr int kOwn = 1024;
  int device = 0, bytes = 0;
  require(cudaGetDevice(&device), "device");
  require(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "device");
  return static_cast<size_t>(bytes - kOwn);
}

/** How many blocks of a kernel run at once. */
template <class Kernel>
int blocks_at_once(Kernel kernel, int threads) {
  int device = 0, processors = 0, each = 0;
  require(cudaGetDevice(&device), "device");
  require(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "device");
  require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, 0), "device");
  return std::max(processors * each, 1);
}

} // namespace assay::oracle::device
