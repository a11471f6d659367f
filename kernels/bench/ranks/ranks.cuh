// SPDX-License-Identifier: Apache-2.0
// Several GPUs of one host, each driven by a thread of its own.
#pragma once

#include "kernels/bench/device.cuh"

#include <exception>
#include <memory>
#include <thread>

namespace assay::bench {

class Ranks {
public:
  /// Devices 0 .. count - 1, each of which may read and write the memory of the others.
  explicit Ranks(int count) {
    int devices = 0;
    ASSAY_BENCH_CHECK(cudaGetDeviceCount(&devices));
    if (count < 1 || count > devices)
      throw std::runtime_error("--ranks is " + std::to_string(count) + ", this host has " +
                               std::to_string(devices) + " GPUs");
    for (int r = 0; r < count; ++r) {
      ASSAY_BENCH_CHECK(cudaSetDevice(r));
      for (int peer = 0; peer < count; ++peer)
        if (peer != r) ASSAY_BENCH_CHECK(cudaDeviceEnablePeerAccess(peer, 0));
      streams_.push_back(std::make_unique<Stream>());
    }
  }

  int count() const { return static_cast<int>(streams_.size()); }
  const Stream &stream(int rank) const { return *streams_[rank]; }

  /// f(rank) on a thread of each rank, whose device is current there. Throws what one of them does.
  template <class F>
  void each(F f) const {
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> errors(streams_.size());
    for (int r = 0; r < count(); ++r)
      threads.emplace_back([&, r] {
        try {
          ASSAY_BENCH_CHECK(cudaSetDevice(r));
          f(r);
        } catch (...) {
          errors[r] = std::current_exception();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const std::exception_ptr &error : errors)
      if (error) std::rethrow_exception(error);
  }

  /// Median microseconds of one of `launches` enqueue(rank, i) in a graph of each rank, of the
  /// slowest rank of each of `replays` replays.
  template <class Enqueue>
  double median_us(int launches, int replays, Enqueue enqueue) const {
    std::vector<std::unique_ptr<Graph>> graphs(streams_.size());
    each([&](int r) {
      enqueue(r, 0); // kernels and connections are loaded outside of the graph
      ASSAY_BENCH_CHECK(cudaStreamSynchronize(stream(r).get()));
      graphs[r] = std::make_unique<Graph>(
          stream(r), launches, [&](int i) { enqueue(r, i); }, cudaStreamCaptureModeThreadLocal);
    });
    std::vector<double> slowest, us(streams_.size());
    for (int replay = 0; replay < replays + 2; ++replay) { // two warm-ups
      each([&](int r) { us[r] = graphs[r]->replay_us(); });
      if (replay >= 2) slowest.push_back(*std::max_element(us.begin(), us.end()));
    }
    each([&](int r) { graphs[r].reset(); });
    std::nth_element(slowest.begin(), slowest.begin() + slowest.size() / 2, slowest.end());
    return slowest[slowest.size() / 2] / launches;
  }

private:
  std::vector<std::unique_ptr<Stream>> streams_;
};

} // namespace assay::bench
