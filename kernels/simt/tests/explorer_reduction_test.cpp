// SPDX-License-Identifier: Apache-2.0
// The explorer's reduction against all orders of operations, on random programs: where some order
// ends at a hazard the reduced search finds one, too, and else both see the same results.
#include <set>
#include <vector>

#include "kernels/simt/explorer.h"
#include "kernels/simt/tests/explored_kernels.h"

namespace assay::simt {
namespace {

constexpr uint32_t kThreads = 3, kMostSteps = 3, kBarriers = 2;

struct Step {
  enum Kind : uint32_t { kLoad, kStore, kAdd, kArrive, kWait, kExpect, kCopy } kind;
  uint32_t object, value;
};
struct Program {
  uint32_t counts[kBarriers];
  std::vector<Step> steps[kThreads];
};

// `kinds`: the first so many kinds of steps. Programs without copies have more steps.
Program draw(ScheduleRandom &random, uint32_t kinds) {
  Program program;
  for (uint32_t &count : program.counts)
    count = 1 + random.below(2);
  for (auto &steps : program.steps)
    for (uint32_t left = 1 + random.below(kMostSteps); left != 0; --left)
      steps.push_back(
          {static_cast<Step::Kind>(random.below(kinds)), random.below(kBarriers), random.below(2)});
  return program;
}

using Seen = std::vector<uint32_t>; // by the threads, and what memory holds in the end

void perform(const Step &step, uint32_t *g, uint32_t *b, Seen &seen) {
  uint32_t *word = g + step.object, *barrier = b + 2 * step.object;
  switch (step.kind) {
  case Step::kLoad:
    seen[me() * kMostSteps] = seen[me() * kMostSteps] * 8 + explored::atomic_load(word) + 1;
    break;
  case Step::kStore:
    explored::atomic_store(word, 4 + me());
    break;
  case Step::kAdd:
    seen[me() * kMostSteps + 1] = seen[me() * kMostSteps + 1] * 8 + explored::atomic_add(word) + 1;
    break;
  case Step::kArrive:
    explored::arrive(barrier);
    break;
  case Step::kWait:
    explored::wait(barrier, step.value);
    break;
  case Step::kExpect:
    mbarrier_expect(barrier, 16, Site::here());
    break;
  case Step::kCopy:
    bulk_copy(
        b + 16 + 4 * me(), 16, 16, barrier,
        [&](std::vector<BulkPiece> &pieces) {
          pieces.push_back({.offset = 0, .bytes = 16, .source = g + 8});
        },
        Site::here());
    break;
  }
}

struct Outcomes {
  bool hazard = false;
  std::set<Seen> results;
  Explored explored;
};

Outcomes outcomes_of(const Program &program, Reduction reduction) {
  alignas(16) uint32_t g[16];
  Stream stream;
  stream.memory.adopt(g, sizeof g, Access::kReadWrite, "g");
  Outcomes outcomes;
  const auto run = [&] {
    std::memset(g, 0, sizeof g);
    Seen seen(kThreads * kMostSteps);
    launch(&stream, block_of(kThreads, 256), [&] {
      uint32_t *b = explored::barriers({program.counts[0], program.counts[1]});
      if (me() == 0) fence_mbarrier_init(Site::here());
      sync_block();
      for (const Step &step : program.steps[me()])
        perform(step, g, b, seen);
    });
    outcomes.hazard |= !stream.hazards.empty();
    stream.hazards.clear();
    seen.insert(seen.end(), g, g + kBarriers);
    if (!outcomes.hazard) outcomes.results.insert(seen);
    return !outcomes.hazard;
  };
  outcomes.explored = explore(stream, 100000, run, reduction);
  return outcomes;
}

void compare(uint32_t programs, uint32_t kinds, uint64_t seed) {
  ScheduleRandom random(seed);
  uint64_t clean = 0, reduced_runs = 0, all_runs = 0;
  for (uint32_t i = 0; i < programs; ++i) {
    const Program program = draw(random, kinds);
    const Outcomes reduced = outcomes_of(program, Reduction::kOn);
    const Outcomes all = outcomes_of(program, Reduction::kOff);
    ASSERT_EQ(reduced.hazard, all.hazard) << "program " << i;
    if (all.hazard) continue;
    EXPECT_TRUE(all.explored.complete && reduced.explored.complete) << "program " << i;
    EXPECT_EQ(reduced.results, all.results) << "program " << i;
    ++clean;
    reduced_runs += reduced.explored.runs + reduced.explored.repeated;
    all_runs += all.explored.runs;
  }
  EXPECT_GT(clean, programs / 100);
  EXPECT_LT(reduced_runs, all_runs);
  std::printf("%u programs, %llu without a hazard: %llu runs in place of %llu\n", programs,
              static_cast<unsigned long long>(clean), static_cast<unsigned long long>(reduced_runs),
              static_cast<unsigned long long>(all_runs));
}

TEST(ExplorerReduction, atomics) { compare(100, 3, 1); }
TEST(ExplorerReduction, atomics_and_phases) { compare(400, 5, 2); }
TEST(ExplorerReduction, atomics_phases_and_copies) { compare(400, 7, 3); }

} // namespace
} // namespace assay::simt
