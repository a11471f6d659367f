// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace assay::simt {

// Which runnable thread goes next, and in which order blocks run.
enum class Order : uint8_t {
  kAscending,  // lowest index first
  kDescending, // highest index first
  kSeeded,     // drawn from Schedule::seed
};

// When the bytes of an async copy land in shared memory.
enum class CopyCompletion : uint8_t {
  kAtWait,  // as late as allowed
  kAtIssue, // as early as allowed
  kSeeded,  // drawn per copy
};

// A part of a case: the same schedule gives the same run, bit for bit.
struct Schedule {
  Order order = Order::kAscending;
  CopyCompletion copies = CopyCompletion::kAtWait;
  uint64_t seed = 0;
  // Where warps are held back, whatever the order is. At each hold the running warp is held back
  // (ReadySet::hold). A number says how many points behind the hold before it a hold stands, at
  // least 1; points are shared accesses and completed waits. Every launch begins with the first
  // number. The numbers outlive the launches.
  std::span<const uint32_t> holds = {};
  // A seeded schedule lets others run in front of one access in so many, shared or global, plain or
  // atomic. With 0 the seed draws the number where loads and stores are instrumented; elsewhere
  // shared accesses alone count (MODEL.md).
  uint32_t distance = 0;
};

// SplitMix64. It is good enough to draw schedules, and the same on every machine.
class ScheduleRandom {
public:
  explicit ScheduleRandom(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // A number below `bound`. Its bias is below bound / 2^32: uniform enough for schedules.
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>(((next() >> 32) * static_cast<uint64_t>(bound)) >> 32);
  }

private:
  uint64_t state_;
};

} // namespace assay::simt
