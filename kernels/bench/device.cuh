// SPDX-License-Identifier: Apache-2.0
// Small owners of CUDA objects for the benches. Errors throw: a bench has nothing to clean up
// after.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::bench {

inline void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}
#define ASSAY_BENCH_CHECK(call) ::assay::bench::check((call), #call)

template <class T>
class DeviceArray {
public:
  explicit DeviceArray(size_t n) : n_(n) {
    ASSAY_BENCH_CHECK(cudaMalloc(&data_, std::max<size_t>(n, 1) * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T> &host) : DeviceArray(host.size()) {
    ASSAY_BENCH_CHECK(cudaMemcpy(data_, host.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  T *get() const { return data_; }
  size_t size() const { return n_; }

private:
  T *data_ = nullptr;
  size_t n_;
};

class Stream {
public:
  Stream() { ASSAY_BENCH_CHECK(cudaStreamCreate(&stream_)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

/// Median microseconds of one launch: captures `launches` calls of enqueue(i) into a graph and
/// replays it.
template <class Enqueue>
double graph_median_us(const Stream &stream, int launches, int replays, Enqueue enqueue) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t begin, end;
  ASSAY_BENCH_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  for (int i = 0; i < launches; ++i)
    enqueue(i);
  ASSAY_BENCH_CHECK(cudaStreamEndCapture(stream.get(), &graph));
  ASSAY_BENCH_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  ASSAY_BENCH_CHECK(cudaEventCreate(&begin));
  ASSAY_BENCH_CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int r = 0; r < replays + 2; ++r) { // two warm-ups
    ASSAY_BENCH_CHECK(cudaEventRecord(begin, stream.get()));
    ASSAY_BENCH_CHECK(cudaGraphLaunch(exec, stream.get()));
    ASSAY_BENCH_CHECK(cudaEventRecord(end, stream.get()));
    ASSAY_BENCH_CHECK(cudaEventSynchronize(end));
    float ms = 0;
    ASSAY_BENCH_CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (r >= 2) times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] * 1000.0 / launches;
}

} // namespace assay::bench
