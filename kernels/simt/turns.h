// SPDX-License-Identifier: Apache-2.0
// Who goes next where the order of the schedule does not say it: under the explorer, and in
// schedules that let others run in front of any access.
#pragma once

#include "kernels/simt/executor.h"
#include "kernels/simt/explorer.h"

namespace assay::simt {

class Turns {
public:
  // executor_explore.cpp: nobody performs an operation before the explorer chooses it.
  static void run_blocks(Executor &e, uint32_t clusters);
  static void announce(Executor &e, const Operation &operation, Site site,
                       Executor::Wait wait = Executor::Wait::kTurn);
  // The bulk copy that was issued last is one more who acts.
  static void announce_copy(Executor &e, const void *barrier);
  // Nobody is ready. Makes one ready whose operation is next; until then bytes of copies may come.
  // Returns false where nobody can go on.
  static bool choose(Executor &e);
  static void meet(Executor &e, const std::array<uint64_t, kMaxBlockThreads / 64> &threads);
  static void meet_lanes(Executor &e, uint32_t warp, uint32_t lanes);

  // executor_preempt.cpp: in front of any access others may run.
  static uint32_t distance_of(const Schedule &schedule);
  static bool fine(const Executor &e) { return e.fine_.distance != 0; }
  static void before_checked(Executor &e, const void *address, size_t bytes);
  static void before_raw(Executor &e, const void *address, size_t bytes);
  // In front of an access of the running thread through a primitive.
  static void before(Executor &e, Space space, const void *address, size_t bytes) {
    if (e.fine_.distance != 0) [[unlikely]]
      before_checked(e, address, bytes);
    else if (space == Space::kShared)
      e.maybe_preempt(kAtSharedAccess);
  }
  static constexpr uint32_t kAtSharedAccess = 64; // seeded schedules: mean accesses per preemption

private:
  static bool possible(const Executor &e, uint32_t thread);
  static Explorer::Effect effect_of(const Executor &e, const Operation &operation,
                                    uint32_t bytes = 0);
  static bool complete_copy(Executor &e, uint32_t who);
  static void let_others_run(Executor &e);
};

} // namespace assay::simt
