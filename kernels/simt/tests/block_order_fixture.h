// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/tests/fixture.h"

namespace assay::simt {

// Kernels of several blocks. A hazard must not depend on luck: each is looked for under every
// schedule.
class BlockOrderTest : public HazardTest {
protected:
  BlockOrderTest() {
    words = static_cast<uint32_t *>(
        stream.memory.allocate(4096, Access::kReadWrite, InitState::kDefined, "words"));
    std::memset(words, 0, 4096);
    counter = words + 512;
  }
  // In grids of two blocks.
  bool runs_second() const { return stream.counters.blocks % 2 == 0; }
  // Synchronises a warp and orders nothing.
  static void vote(Site site = Site::here()) {
    warp_collective({Collective::kAny, ~0u, 4, nullptr, nullptr, 0, nullptr}, site);
  }

  struct Seen {
    uint32_t line = 0, other = 0;
    std::string text;
  };
  // Expects the hazard under every schedule. Lines and message are those of the first one.
  Seen expect_unordered(const LaunchConfig &config, FunctionRef<void()> body) {
    Seen first;
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kSeeded})
      for (uint64_t seed = 0; seed < (order == Order::kSeeded ? 20 : 1); ++seed) {
        std::memset(words, 0, 4096);
        stream.hazards.clear();
        stream.schedule.order = order;
        stream.schedule.seed = seed;
        EXPECT_EQ(launch(&stream, config, body), LaunchStatus::kHazard);
        if (stream.hazards.empty()) continue;
        const Hazard &hazard = stream.hazards.back();
        EXPECT_EQ(hazard.kind, HazardKind::kUnordered) << hazard.message;
        if (first.line == 0) first = {hazard.site.line, hazard.other.line, hazard.message};
      }
    stream.schedule = {};
    return first;
  }
  void expect_ordered(const LaunchConfig &config, FunctionRef<void()> body) {
    expect_clean(config, [&] {
      if (block_is_first()) std::memset(words, 0, 4096);
      body();
    });
  }

  uint32_t *words, *counter;

private:
  bool block_is_first() {
    const bool first = stream.counters.launches != launches_;
    launches_ = stream.counters.launches;
    return first;
  }
  uint64_t launches_ = 0;
};

} // namespace assay::simt
