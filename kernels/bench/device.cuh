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

/// What was enqueued while it was made, to be run again and again.
class Graph {
public:
  /// Captures enqueue(0) .. enqueue(launches - 1).
  template <class Enqueue>
  Graph(const Stream &stream, int launches, Enqueue enqueue,
        cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal)
      : stream_(stream.get()) {
    cudaGraph_t graph;
    ASSAY_BENCH_CHECK(cudaStreamBeginCapture(stream_, mode));
    for (int i = 0; i < launches; ++i)
      enqueue(i);
    ASSAY_BENCH_CHECK(cudaStreamEndCapture(stream_, &graph));
    ASSAY_BENCH_CHECK(cudaGraphInstantiate(&exec_, graph, 0));
    cudaGraphDestroy(graph);
    ASSAY_BENCH_CHECK(cudaEventCreate(&begin_));
    ASSAY_BENCH_CHECK(cudaEventCreate(&end_));
  }
  ~Graph() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaGraphExecDestroy(exec_);
  }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  /// Microseconds of all its launches; returns when they are done.
  double replay_us() const {
    ASSAY_BENCH_CHECK(cudaEventRecord(begin_, stream_));
    ASSAY_BENCH_CHECK(cudaGraphLaunch(exec_, stream_));
    ASSAY_BENCH_CHECK(cudaEventRecord(end_, stream_));
    ASSAY_BENCH_CHECK(cudaEventSynchronize(end_));
    float ms = 0;
    ASSAY_BENCH_CHECK(cudaEventElapsedTime(&ms, begin_, end_));
    return ms * 1000.0;
  }

private:
  cudaStream_t stream_;
  cudaGraphExec_t exec_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// Median microseconds of one launch, of `replays` replays of a graph of them.
template <class Enqueue>
double graph_median_us(const Stream &stream, int launches, int replays, Enqueue enqueue) {
  const Graph graph(stream, launches, enqueue);
  std::vector<double> times;
  for (int r = 0; r < replays + 2; ++r) { // two warm-ups
    const double us = graph.replay_us();
    if (r >= 2) times.push_back(us);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] / launches;
}

} // namespace assay::bench
