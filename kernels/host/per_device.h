// SPDX-License-Identifier: Apache-2.0
// What is remembered for each CUDA device, by its ordinal.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay {

/// Devices about which something is remembered: a bit each in a word. Others are asked, or told,
/// again by every call.
inline constexpr int kKnownDevices = 64;
constexpr bool is_known_device(int device) { return device >= 0 && device < kKnownDevices; }

/// On which devices something was done. Threads may do it twice, never less than once.
class DoneOnDevices {
public:
  bool contains(int device) const {
    return is_known_device(device) && (done_.load(std::memory_order_acquire) >> device & 1) != 0;
  }
  void add(int device) {
    if (is_known_device(device)) done_.fetch_or(uint64_t{1} << device, std::memory_order_release);
  }

private:
  std::atomic<uint64_t> done_{0};
};

} // namespace assay
