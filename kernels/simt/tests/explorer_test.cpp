// SPDX-License-Identifier: Apache-2.0
// Wrong kernels that some schedule alone shows: what the usual schedules find, and what the
// explorer finds. Right kernels are explored completely, without a report.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "kernels/simt/explorer.h"
#include "kernels/simt/tests/explored_kernels.h"

namespace assay::simt {
namespace {

using explored::Kernel;
using explored::kKernels;
using explored::kResult;
using explored::kWords;

// One memory for all runs of a kernel.
class Runs {
public:
  Runs() { stream.memory.adopt(words, sizeof words, Access::kReadWrite, "words"); }
  // Runs once, from the same memory each time. Returns what is wrong with the run.
  std::string run(const LaunchConfig &config, const std::function<void(uint32_t *)> &body) {
    std::memset(words, 0, sizeof words);
    stream.hazards.clear();
    launch(&stream, config, [&] { body(words); });
    if (!stream.hazards.empty()) return stream.hazards.back().message;
    const std::vector<uint32_t> result(words + kResult, words + kWords);
    if (first_.empty()) first_ = result;
    return result == first_ ? "" : "another result";
  }

  Stream stream;

private:
  alignas(16) uint32_t words[kWords] = {};
  std::vector<uint32_t> first_;
};

LaunchConfig config_of(const Kernel &kernel) {
  return block_of(kernel.threads, 256, kernel.blocks);
}

// The schedules that tests of order run, 44 in all.
uint32_t usual_schedules_that_find(const Kernel &kernel, bool right) {
  Runs runs;
  uint32_t found = 0;
  for (const CopyCompletion copies : {CopyCompletion::kAtWait, CopyCompletion::kAtIssue})
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kSeeded})
      for (uint64_t seed = 0; seed < (order == Order::kSeeded ? 20 : 1); ++seed) {
        runs.stream.schedule = {order, copies, seed};
        found += !runs.run(config_of(kernel), [&](uint32_t *g) { kernel.body(g, right); }).empty();
      }
  return found;
}

struct Found {
  Explored explored;
  std::string first; // what was wrong
};
Found explore_kernel(const LaunchConfig &config, const std::function<void(uint32_t *)> &body,
                     uint64_t bound = 10000, Reduction reduction = Reduction::kOn) {
  Runs runs;
  Found found;
  found.explored = explore(
      runs.stream, bound,
      [&] {
        found.first = runs.run(config, body);
        return found.first.empty();
      },
      reduction);
  return found;
}

TEST(Explorer, finds_every_wrong_kernel) {
  for (const Kernel &kernel : kKernels) {
    const uint32_t usual = usual_schedules_that_find(kernel, false);
    const Found found =
        explore_kernel(config_of(kernel), [&](uint32_t *g) { kernel.body(g, false); });
    EXPECT_FALSE(found.first.empty()) << kernel.name << ": " << found.explored.text();
    EXPECT_FALSE(found.explored.complete) << kernel.name;
    std::printf("%-26s usual schedules: %2u of 44; explorer: run %llu, %s\n", kernel.name, usual,
                static_cast<unsigned long long>(found.explored.runs), found.first.c_str());
  }
}

TEST(Explorer, covers_every_right_kernel_without_a_report) {
  for (const Kernel &kernel : kKernels) {
    EXPECT_EQ(usual_schedules_that_find(kernel, true), 0u) << kernel.name;
    const Found found =
        explore_kernel(config_of(kernel), [&](uint32_t *g) { kernel.body(g, true); });
    EXPECT_EQ(found.first, "") << kernel.name;
    EXPECT_TRUE(found.explored.complete) << kernel.name << ": " << found.explored.text();
    std::printf("%-26s %s\n", kernel.name, found.explored.text().c_str());
  }
}

// Producer and consumers as threads.
TEST(Explorer, covers_rings_of_two_and_three_slots) {
  for (const uint32_t slots : {2u, 3u})
    for (const uint32_t consumers : {1u, 2u, 3u}) {
      const Found found = explore_kernel(block_of(1 + consumers, 256), [&](uint32_t *) {
        explored::ring(slots, 2 * slots + 1, consumers, consumers);
      });
      EXPECT_EQ(found.first, "") << slots << " " << consumers;
      EXPECT_TRUE(found.explored.complete) << found.explored.text();
    }
}

// Each phase counts all lanes of two warps. Lanes of a warp are no reason for more runs.
void ring_of_warps(bool right) {
  uint32_t *words = shared_words(128), *full = words, *empty = words + 8, *data = words + 16;
  if (me() == 0)
    for (uint32_t s = 0; s < 2; ++s) {
      mbarrier_init(full + 2 * s, 1, Site::here());
      mbarrier_init(empty + 2 * s, right ? 64 : 32, Site::here());
    }
  sync_block();
  for (uint32_t round = 0; round < 4; ++round) {
    const uint32_t s = round % 2, parity = round / 2 % 2;
    uint32_t *slot = data + 32 * s;
    if (me() < 32) {
      explored::wait(empty + 2 * s, parity ^ 1);
      store(Space::kShared, slot + lane(), round);
      warp_barrier(~0u);
      if (me() == 0) explored::arrive(full + 2 * s);
    } else {
      explored::wait(full + 2 * s, parity);
      load(Space::kShared, slot + lane());
      explored::arrive(empty + 2 * s);
    }
  }
}

TEST(Explorer, covers_a_ring_of_three_warps) {
  const Found found = explore_kernel(block_of(96, 512), [](uint32_t *) { ring_of_warps(true); });
  EXPECT_EQ(found.first, "");
  EXPECT_TRUE(found.explored.complete) << found.explored.text();
  EXPECT_LE(found.explored.runs, 10u) << found.explored.text();
  EXPECT_NE(explore_kernel(block_of(96, 512), [](uint32_t *) { ring_of_warps(false); }).first, "");
}

// Copies land in any order, before and behind the waits for them.
void ring_of_copies(const uint32_t *g, bool right) {
  uint32_t *full = explored::barriers({1, 1, 1, 1}), *empty = full + 4, *data = full + 16;
  if (me() == 0) fence_mbarrier_init(Site::here());
  for (uint32_t round = 0; round < 4; ++round) {
    const uint32_t s = round % 2, parity = round / 2 % 2;
    if (me() == 0) {
      if (right) explored::wait(empty + 2 * s, parity ^ 1);
      const auto fill = [&](std::vector<BulkPiece> &pieces) {
        pieces.push_back({.offset = 0, .bytes = 16, .source = g});
      };
      mbarrier_expect(full + 2 * s, 16, Site::here());
      bulk_copy(data + 4 * s, 16, 16, full + 2 * s, fill, Site::here());
      explored::arrive(full + 2 * s);
    } else {
      explored::wait(full + 2 * s, parity);
      load(Space::kShared, data + 4 * s);
      explored::arrive(empty + 2 * s);
    }
  }
}

TEST(Explorer, covers_a_ring_that_bulk_copies_fill) {
  const Found found =
      explore_kernel(block_of(2, 256), [](uint32_t *g) { ring_of_copies(g, true); });
  EXPECT_EQ(found.first, "");
  EXPECT_TRUE(found.explored.complete) << found.explored.text();
  EXPECT_NE(explore_kernel(block_of(2, 256), [](uint32_t *g) { ring_of_copies(g, false); }).first,
            "");
}

TEST(Explorer, says_what_its_bound_left_out) {
  const auto count = [](uint32_t *g) {
    explored::atomic_add(g);
    explored::atomic_add(g);
  };
  const Explored all = explore_kernel(block_of(3), count).explored;
  EXPECT_EQ(all.runs, 90u); // 6! / (2! 2! 2!)
  EXPECT_EQ(all.text(),
            "all 90 schedules of up to " + std::to_string(all.choices) + " choices were run");
  const Explored some = explore_kernel(block_of(3), count, 10).explored;
  EXPECT_FALSE(some.complete);
  EXPECT_EQ(some.runs + some.repeated, 10u);
  EXPECT_GT(some.left, 0u);
  EXPECT_NE(some.text().find("the bound was reached; at least"), std::string::npos) << some.text();
}

// Who spins lets others run; the schedules are without end.
TEST(Explorer, a_spin_ends_at_the_bound) {
  const Found found = explore_kernel(
      block_of(2),
      [](uint32_t *g) {
        if (me() == 1)
          explored::atomic_store(g, 1);
        else
          while (explored::atomic_load(g) == 0)
            continue;
      },
      50);
  EXPECT_EQ(found.first, "");
  EXPECT_FALSE(found.explored.complete);
}

TEST(Explorer, says_that_a_run_is_too_long) {
  const Found found = explore_kernel(block_of(2), [](uint32_t *g) {
    for (int i = 0; i < 6000; ++i)
      explored::atomic_add(g + me());
  });
  EXPECT_NE(found.first.find("so many choices is not explored"), found.first.npos) << found.first;
  EXPECT_TRUE(found.explored.too_long);
}

TEST(Explorer, a_launch_that_does_not_repeat_is_refused) {
  uint32_t runs = 0;
  EXPECT_THROW(explore_kernel(block_of(3),
                              [&](uint32_t *g) {
                                if (me() == 0) ++runs;
                                if (runs < 3 || me() != 1) explored::atomic_add(g);
                              }),
               std::logic_error);
}

} // namespace
} // namespace assay::simt
