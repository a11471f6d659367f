// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace assay::simt {

// Operations that all lanes of a mask perform together.
enum class Collective : uint8_t {
  kWarpBarrier,
  kShflXor,
  kShflIdx,
  kShflUp,
  kShflDown,
  kBallot,
  kAny,
  kAll,
  kLdmatrix,
  kMovmatrix,
  kMma,
  kWgmma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
};
constexpr uint32_t kCollectiveCount = 15;

const char *to_string(Collective kind); // "shfl_xor", ...

// What launches did. A Stream sums it over its launches until its owner resets it.
struct Counters {
  uint64_t launches = 0;
  uint64_t blocks = 0;
  uint64_t block_barriers = 0;                          // completed, per block
  uint64_t named_barriers = 0;                          // completed, per block
  std::array<uint64_t, kCollectiveCount> collectives{}; // completed, per warp
  uint64_t global_load_requests = 0;                    // per thread
  uint64_t global_load_bytes = 0;
  uint64_t global_store_requests = 0;
  uint64_t global_store_bytes = 0;
  uint64_t atomics = 0;
  uint64_t mbarrier_phases = 0;  // completed
  uint64_t async_copies = 0;     // per thread; zero-filled ones included
  uint64_t async_copy_bytes = 0; // read from global memory
  uint64_t shared_load_bytes = 0;
  uint64_t shared_store_bytes = 0;
  uint64_t fiber_switches = 0;

  uint64_t collective(Collective kind) const { return collectives[static_cast<std::size_t>(kind)]; }
};

} // namespace assay::simt
