// SPDX-License-Identifier: Apache-2.0
// Schedules, counters, coordinates, reuse after a hazard, several host threads.
#include <algorithm>
#include <set>
#include <thread>

#include "kernels/simt/tests/fixture.h"

namespace assay::simt {
namespace {

// The order in which threads pass a point right after a barrier, over two blocks.
std::vector<uint32_t> trace(const Schedule &schedule) {
  Stream stream;
  stream.schedule = schedule;
  std::vector<uint32_t> order;
  EXPECT_EQ(launch(&stream, block_of(70, 0, 2),
                   [&] {
                     order.push_back(thread_view.block_idx[0] * 1000 + me());
                     sync_block();
                     order.push_back(thread_view.block_idx[0] * 1000 + me());
                   }),
            LaunchStatus::kOk);
  return order;
}

TEST(Schedule, ascending_and_descending) {
  const auto up = trace({Order::kAscending, CopyCompletion::kAtWait, 0});
  const auto down = trace({Order::kDescending, CopyCompletion::kAtWait, 0});
  ASSERT_EQ(up.size(), 280u);
  for (uint32_t i = 0; i < 70; ++i) {
    EXPECT_EQ(up[i], i);
    EXPECT_EQ(down[i], 1069 - i);
    EXPECT_EQ(up[140 + i], 1000 + i);
  }
}

TEST(Schedule, seeded_is_reproducible_and_varied) {
  std::set<std::vector<uint32_t>> traces;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Schedule schedule{Order::kSeeded, CopyCompletion::kAtWait, seed};
    const auto first = trace(schedule);
    EXPECT_EQ(first, trace(schedule));
    auto sorted = first;
    std::sort(sorted.begin(), sorted.end());
    for (uint32_t i = 0; i < 280; ++i)
      EXPECT_EQ(sorted[i], i / 140 * 1000 + i % 140 / 2);
    traces.insert(first);
  }
  EXPECT_EQ(traces.size(), 10u);
}

// The warps of a block in the order in which they end; each of its threads stores once.
std::vector<uint32_t> ends(const std::vector<uint32_t> &holds) {
  Stream stream;
  stream.schedule.holds = holds;
  std::vector<uint32_t> warps;
  EXPECT_EQ(launch(&stream, block_of(128, 4 * 128),
                   [&] {
                     store(Space::kShared, shared_words(128) + me(), 1);
                     if (me() % 32 == 31) warps.push_back(me() / 32);
                   }),
            LaunchStatus::kOk);
  return warps;
}

TEST(Schedule, a_warp_that_falls_behind_goes_last) {
  using Warps = std::vector<uint32_t>;
  EXPECT_EQ(ends({}), (Warps{0, 1, 2, 3}));
  EXPECT_EQ(ends({1}), (Warps{1, 2, 3, 0}));
  EXPECT_EQ(ends({33}), (Warps{0, 2, 3, 1}));
  // The second falls behind the first, which goes on at once: the others have ended or wait for it.
  EXPECT_EQ(ends({1, 1, 1}), (Warps{3, 0, 1, 2}));
  EXPECT_EQ(ends({1, 1, 1, 1, 1}), (Warps{1, 2, 3, 0}));
  EXPECT_EQ(ends({1000}), (Warps{0, 1, 2, 3}));
}

// A missing barrier, of which the executor hears nothing: the reader sees the writer's value or the
// old one, as the schedule has it.
uint32_t racy_read(const Schedule &schedule) {
  Stream stream;
  stream.schedule = schedule;
  uint32_t seen = 0;
  EXPECT_EQ(launch(&stream, block_of(64, 4),
                   [&] {
                     uint32_t *word = shared_words(1);
                     if (me() == 0) store(Space::kShared, word, 1);
                     sync_block();
                     if (me() == 0) *word = 2; // a barrier is missing after this
                     if (me() == 63) seen = *word;
                   }),
            LaunchStatus::kOk);
  return seen;
}

constexpr uint32_t kBehindTheBarrier[] = {2};

TEST(Schedule, order_exposes_a_missing_barrier) {
  std::set<uint32_t> seen;
  seen.insert(racy_read({Order::kAscending, CopyCompletion::kAtWait, 0}));
  seen.insert(racy_read({Order::kDescending, CopyCompletion::kAtWait, 0}));
  EXPECT_EQ(seen.size(), 2u);
  std::set<uint32_t> seeded;
  for (uint64_t seed = 0; seed < 20; ++seed)
    seeded.insert(racy_read({Order::kSeeded, CopyCompletion::kAtWait, seed}));
  EXPECT_EQ(seeded.size(), 2u);
  // Whoever ends the barrier reads at once; where its warp falls behind, the writer comes first.
  EXPECT_EQ(racy_read({}), 1u);
  EXPECT_EQ(racy_read({.holds = kBehindTheBarrier}), 2u);
}

TEST(Executor, coordinates_of_a_three_dimensional_grid) {
  LaunchConfig config;
  config.grid_x = 3, config.grid_y = 4, config.grid_z = 2, config.block = 33;
  std::set<std::vector<uint32_t>> seen;
  EXPECT_EQ(launch(nullptr, config,
                   [&] {
                     const ThreadView &v = thread_view;
                     EXPECT_EQ(v.grid_dim[0], 3u);
                     EXPECT_EQ(v.grid_dim[1], 4u);
                     EXPECT_EQ(v.grid_dim[2], 2u);
                     EXPECT_EQ(v.block_dim, 33u);
                     seen.insert({v.block_idx[0], v.block_idx[1], v.block_idx[2], v.thread});
                   }),
            LaunchStatus::kOk);
  EXPECT_EQ(seen.size(), 3u * 4 * 2 * 33);
}

TEST(Executor, counts_what_happened) {
  Stream stream;
  EXPECT_EQ(launch(&stream, block_of(64, 0, 3),
                   [] {
                     sync_block();
                     sync_block();
                     sync_named(2, 64);
                     warp_barrier(0xffffffffu);
                   }),
            LaunchStatus::kOk);
  EXPECT_EQ(stream.counters.launches, 1u);
  EXPECT_EQ(stream.counters.blocks, 3u);
  EXPECT_EQ(stream.counters.block_barriers, 6u);
  EXPECT_EQ(stream.counters.named_barriers, 3u);
  EXPECT_EQ(stream.counters.collective(Collective::kWarpBarrier), 6u);
  EXPECT_GT(stream.counters.fiber_switches, 3u * 64);
}

TEST(Executor, usable_after_hazards_and_with_other_shapes) {
  Stream stream;
  for (uint32_t i = 0; i < 50; ++i) {
    const uint32_t threads = 1 + i * 37 % 1024;
    EXPECT_EQ(launch(&stream, block_of(threads, i * 8), [&] { sync_block(); }), LaunchStatus::kOk);
    EXPECT_EQ(launch(&stream, block_of(64),
                     [&] {
                       if (me() != i % 64) sync_block();
                     }),
              LaunchStatus::kHazard);
  }
  EXPECT_EQ(stream.hazards.size(), 50u);
}

// Deep frames on many fibers at once.
uint32_t descend(uint32_t depth) {
  volatile char frame[1024];
  frame[depth] = static_cast<char>(depth);
  if (depth == 0) {
    sync_block();
    return 0;
  }
  return descend(depth - 1) + static_cast<uint32_t>(frame[depth]);
}

TEST(Executor, fibers_have_room) {
  EXPECT_EQ(launch(nullptr, block_of(1024), [] { EXPECT_EQ(descend(32), 528u); }),
            LaunchStatus::kOk);
}

TEST(Executor, streams_on_several_host_threads) {
  std::vector<std::thread> workers;
  std::vector<uint64_t> sums(4, 0);
  for (uint32_t w = 0; w < 4; ++w)
    workers.emplace_back([&sums, w] {
      Stream stream;
      for (int repeat = 0; repeat < 50; ++repeat)
        if (launch(&stream, block_of(96, 384), [&] {
              uint32_t *words = shared_words(96);
              store(Space::kShared, words + me(), me() + w);
              sync_block();
              sums[w] += load(Space::kShared, words + 95 - me());
            }) != LaunchStatus::kOk)
          sums[w] = ~uint64_t{0} / 2;
    });
  for (auto &worker : workers)
    worker.join();
  for (uint32_t w = 0; w < 4; ++w)
    EXPECT_EQ(sums[w], 50u * (95 * 96 / 2 + 96 * w));
}

} // namespace
} // namespace assay::simt
