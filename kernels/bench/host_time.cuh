// SPDX-License-Identifier: Apache-2.0
// What a call costs the host: its checks and its launch, beside the checks alone. The device may be
// behind: a call has returned long before its kernel ends.
#pragma once

#include "kernels/bench/cell_run.cuh"

#include <chrono>

namespace assay::bench {

/// Calls between two waits for the device. A stream holds about 1,024 launches that have not begun,
/// and a call makes up to four (a cascade): with more, the host would be timed waiting for room.
inline constexpr int kHostCalls = 200;

/// Median microseconds of one of `calls` calls of `run`, over rounds between which `wait` runs
/// untimed: 15 of them, fewer (3 at least) where they take more than 0.2 s.
template <class Run, class Wait>
double host_median_us(int calls, Run run, Wait wait) {
  using Clock = std::chrono::steady_clock;
  using Microseconds = std::chrono::duration<double, std::micro>;
  constexpr size_t kMaxRounds = 15, kMinRounds = 3;
  constexpr Microseconds kMax(200'000);
  constexpr int kWarmUps = 16; // modules are loaded, caches are filled
  for (int i = 0; i < kWarmUps; ++i)
    run();
  wait();
  std::vector<double> us;
  const auto start = Clock::now();
  while (us.size() < kMinRounds || (us.size() < kMaxRounds && Clock::now() - start < kMax)) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i)
      run();
    us.push_back(Microseconds(Clock::now() - begin).count() / calls);
    wait();
  }
  std::nth_element(us.begin(), us.begin() + us.size() / 2, us.end());
  return us[us.size() / 2];
}

/// Host microseconds of one enqueue() in a row of them.
template <class Enqueue>
double host_enqueue_us(const Stream &stream, Enqueue enqueue) {
  return host_median_us(kHostCalls, enqueue,
                        [&] { ASSAY_BENCH_CHECK(cudaStreamSynchronize(stream.get())); });
}

/// Times an entry point and its `supports`, which does what a call does before it launches.
template <class Params>
void time_host(const Stream &stream, const char *name, const Params &params,
               assay_status (*call)(const Params *), assay_status (*supports)(const Params *),
               Timing &out) {
  constexpr int kChecks = 4096;
  out.host_us = host_enqueue_us(stream, [&] { check_status(call(&params), name); });
  out.checks_us = host_median_us(
      kChecks, [&] { check_status(supports(&params), name); }, [] {});
}

} // namespace assay::bench
