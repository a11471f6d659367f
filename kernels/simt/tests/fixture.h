// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "kernels/simt/device.h"
#include "kernels/simt/launch.h"

namespace assay::simt {

inline LaunchConfig block_of(uint32_t threads, size_t shared_bytes = 0, uint32_t blocks = 1) {
  LaunchConfig config;
  config.grid_x = blocks;
  config.block = threads;
  config.shared_bytes = shared_bytes;
  return config;
}

inline uint32_t me() { return thread_view.thread; }
inline uint32_t lane() { return thread_view.thread % kLanes; }

inline void warp_barrier(uint32_t mask, Site site = Site::here()) {
  warp_collective({Collective::kWarpBarrier, mask, 0, nullptr, nullptr, 0, nullptr}, site);
}
inline void sync_block(Site site = Site::here()) { block_barrier(site); }
inline void sync_named(uint32_t id, uint32_t threads, Site site = Site::here()) {
  named_barrier(id, threads, site);
}

// Checked accesses of one 32-bit word.
inline uint32_t load(Space space, const uint32_t *p, Site site = Site::here()) {
  access(space, AccessKind::kRead, p, 4, 4, site);
  return *p;
}
inline void store(Space space, uint32_t *p, uint32_t value, Site site = Site::here()) {
  access(space, AccessKind::kWrite, p, 4, 4, site);
  *p = value;
}
inline uint32_t *shared_words(size_t count, Site site = Site::here()) {
  return static_cast<uint32_t *>(shared_base(count * 4, 16, site));
}

// Runs a body that must stop at a hazard of the given kind whose message begins with
// "<this file>:<line>: <kind>".
class HazardTest : public testing::Test {
protected:
  static uint32_t block() { return thread_view.block_idx[0]; }
  static uint32_t add(uint32_t *p, AtomicOrder order, Scope scope = Scope::kGpu,
                      Site site = Site::here()) {
    atomic_access(p, 4, AtomicKind::kReadModifyWrite, order, scope, site);
    return (*p)++;
  }
  Hazard expect(HazardKind kind, const char *file, uint32_t line, const LaunchConfig &config,
                FunctionRef<void()> body) {
    stream.hazards.clear();
    EXPECT_EQ(launch(&stream, config, body), LaunchStatus::kHazard);
    EXPECT_EQ(stream.hazards.size(), 1u);
    if (stream.hazards.empty()) return {};
    const Hazard hazard = stream.hazards.back();
    EXPECT_EQ(hazard.kind, kind) << hazard.message;
    EXPECT_EQ(hazard.site.line, line) << hazard.message;
    const std::string begin = to_string(Site{file, line}) + ": " + to_string(kind) + ": ";
    EXPECT_EQ(hazard.message.substr(0, begin.size()), begin);
    EXPECT_EQ(hazard.message.find('\n'), std::string::npos);
    return hazard;
  }
  static void expect_text(const Hazard &hazard, const std::string &text) {
    EXPECT_NE(hazard.message.find(text), std::string::npos)
        << "'" << text << "' is not in: " << hazard.message;
  }
  // A body like it, without the error, must run clean: the check then fires on the error alone.
  void expect_clean(const LaunchConfig &config, FunctionRef<void()> body) {
    stream.hazards.clear();
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kSeeded})
      for (uint64_t seed = 0; seed < (order == Order::kSeeded ? 20 : 1); ++seed) {
        stream.schedule.order = order;
        stream.schedule.seed = seed;
        EXPECT_EQ(launch(&stream, config, body), LaunchStatus::kOk);
        for (const Hazard &hazard : stream.hazards)
          ADD_FAILURE() << hazard.message;
      }
    stream.schedule = {};
  }

  Stream stream;
};

} // namespace assay::simt
