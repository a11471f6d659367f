// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>

#include "kernels/simt/tests/fixture.h"

namespace assay::simt {

inline constexpr auto kShared = Space::kShared;

// Kernels that leave out one order, each beside a twin that has it. What is left out must be
// reported on the first schedule and on every other, with the lines of both parties.
class OrderTest : public HazardTest {
protected:
  OrderTest() {
    global = static_cast<uint32_t *>(
        stream.memory.allocate(4096, Access::kReadWrite, InitState::kDefined, "global"));
  }
  static uint32_t warp() { return me() / kLanes; }
  // A line that may be in the report.
  Site party(Site site = Site::here()) {
    parties_.insert(site.line);
    return site;
  }
  static void shuffle(Collective kind, Site site = Site::here()) {
    warp_collective({kind, ~0u, 4, nullptr, nullptr, 0, nullptr}, site);
  }

  // Runs body(right) both ways.
  template <class Body>
  void expect_seen(const LaunchConfig &config, Body body) {
    for (const CopyCompletion copies : {CopyCompletion::kAtWait, CopyCompletion::kAtIssue}) {
      each_schedule(copies, [&](const std::string &schedule) {
        const LaunchStatus status = launch(&stream, config, [&] { body(false); });
        ASSERT_EQ(status, LaunchStatus::kHazard) << "not seen, " << schedule;
        const Hazard &hazard = stream.hazards.back();
        EXPECT_TRUE(parties_.contains(hazard.site.line)) << schedule << ": " << hazard.message;
        EXPECT_TRUE(parties_.contains(hazard.other.line)) << schedule << ": " << hazard.message;
        EXPECT_NE(hazard.message.find(to_string(hazard.other)), std::string::npos)
            << hazard.message;
        if (message.empty()) message = hazard.message;
      });
      each_schedule(copies, [&](const std::string &schedule) {
        EXPECT_EQ(launch(&stream, config, [&] { body(true); }), LaunchStatus::kOk) << schedule;
        for (const Hazard &hazard : stream.hazards)
          ADD_FAILURE() << "false alarm, " << schedule << ": " << hazard.message;
      });
    }
  }

  uint32_t *global;
  std::string message; // of the first report

private:
  template <class F>
  void each_schedule(CopyCompletion copies, F f) {
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kSeeded})
      for (uint64_t seed = 0; seed < (order == Order::kSeeded ? 20 : 1); ++seed) {
        std::memset(global, 0, 4096);
        stream.hazards.clear();
        stream.schedule = {order, copies, seed};
        f("order " + std::to_string(static_cast<int>(order)) + ", seed " + std::to_string(seed));
      }
    stream.schedule = {};
  }
  std::set<uint32_t> parties_;
};

} // namespace assay::simt
