// SPDX-License-Identifier: Apache-2.0
// SplitPlan as a pure function: sound on random batches (plan_audit.h), and who gets what.
#include "kernels/plan/host_plan.h"
#include "kernels/plan/tests/plan_audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace assay {
namespace {

struct PlanCase {
  SplitPlanShape shape;
  std::vector<int32_t> lens;
};

PlanCase random_case(std::mt19937 &rng) {
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(rng() % (high - low + 1));
  };
  PlanCase c;
  c.shape = {.batch = pick(1, 9),
             .head_tiles = pick(1, 5),
             .splits = 0,
             .workers = pick(1, 40),
             .tile = pick(1, 64),
             .span = 0};
  if (pick(0, 2) == 0) {
    c.shape.splits = pick(1, 100);
    c.shape.workers = c.shape.batch * c.shape.splits;
  }
  for (int i = 0; i < c.shape.batch; ++i)
    c.lens.push_back(pick(0, 3) == 0 ? 0 : pick(0, pick(0, 1) ? 3 : 700));
  return c;
}

/// Items and tiles of every worker of a plan.
std::vector<std::pair<int, int>> loads(const SplitPlanShape &shape,
                                       const std::vector<int32_t> &lens) {
  const HostPlan host(shape, lens.data());
  std::vector<std::pair<int, int>> loads;
  for (int64_t w = 0; w < shape.workers; ++w) {
    loads.emplace_back();
    for (const WorkItem &item : items_of_worker(host.view(), w)) {
      ++loads.back().first;
      loads.back().second += tiles_of(item.kv_end - item.kv_begin, shape.tile);
    }
  }
  return loads;
}

/// Items of each request, in split order, gathered from all workers.
std::vector<std::vector<WorkItem>> by_request(const SplitPlan &plan) {
  std::vector<std::vector<WorkItem>> items(static_cast<size_t>(plan.shape.batch));
  for (int64_t w = 0; w < plan.shape.workers; ++w)
    for (const WorkItem &item : items_of_worker(plan, w))
      items[static_cast<size_t>(item.request)].push_back(item);
  for (auto &mine : items)
    std::sort(mine.begin(), mine.end(),
              [](const WorkItem &a, const WorkItem &b) { return a.split < b.split; });
  return items;
}

std::vector<int32_t> words(const std::vector<WorkItem> &items) {
  std::vector<int32_t> out(items.size() * sizeof(WorkItem) / sizeof(int32_t));
  if (!items.empty()) std::memcpy(out.data(), items.data(), items.size() * sizeof(WorkItem));
  return out;
}

TEST(SplitPlan, items_of_one_request_are_those_of_the_whole_plan) {
  std::mt19937 rng(3);
  for (int i = 0; i < 2000; ++i) {
    const PlanCase c = random_case(rng);
    std::vector<int32_t> covered;
    for (int32_t len : c.lens)
      covered.push_back(len / kStartKeys * (rng() % 3 == 0 ? kStartKeys : 0));
    const bool tree = c.shape.splits == 0 && c.shape.span == 0 && rng() % 2 == 0;
    const int32_t *held = tree ? covered.data() : nullptr;
    const HostPlan host(c.shape, c.lens.data(), held);
    const auto expected = by_request(host.view());
    for (int32_t r = 0; r < c.shape.batch; ++r)
      ASSERT_EQ(words(RequestItems(c.shape, c.lens.data(), held).of(r)),
                words(expected[static_cast<size_t>(r)]))
          << "case " << i << ", request " << r;
  }
}

TEST(SplitPlan, is_sound_on_random_batches) {
  std::mt19937 rng(1);
  int empty_rows = 0, shared = 0, idle_workers = 0, crossed = 0;
  for (int i = 0; i < 20000; ++i) {
    const PlanCase c = random_case(rng);
    const HostPlan host(c.shape, c.lens.data());
    const SplitPlan plan = host.view();
    ASSERT_EQ(plan_violation(c.lens, plan), "") << "case " << i;
    for (int32_t len : c.lens)
      empty_rows += len == 0;
    if (c.shape.splits == 0) {
      idle_workers += items_of_worker(plan, c.shape.workers - 1).empty();
      shared += RequestItems(c.shape, c.lens.data()).of(0).size() > 1;
      const auto all = loads(c.shape, c.lens);
      crossed += std::any_of(all.begin(), all.end(), [](auto &load) { return load.first > 1; });
    }
  }
  // The interesting classes did occur.
  EXPECT_GT(empty_rows, 1000);
  EXPECT_GT(shared, 100);
  EXPECT_GT(idle_workers, 100);
  EXPECT_GT(crossed, 100);
}

TEST(SplitPlan, balanced_ranges_differ_by_at_most_one_tile) {
  std::mt19937 rng(2);
  for (int i = 0; i < 1000; ++i) {
    const int64_t total = 1 + rng() % 100000;
    SplitPlanShape shape;
    shape.workers = 1 + static_cast<int>(rng() % 300);
    const WorkLine line = WorkLine::make(shape, total);
    int64_t low = total, high = 0;
    for (int64_t w = 0; w < line.active; ++w) {
      const int64_t n = line.begin(w + 1) - line.begin(w);
      low = std::min(low, n);
      high = std::max(high, n);
      for (int64_t x : {line.begin(w), line.begin(w + 1) - 1})
        ASSERT_EQ(line.worker_of(x), w);
    }
    ASSERT_LE(high - low, 1);
    ASSERT_GE(low, 1);
  }
}

TEST(SplitPlan, requests_get_whole_workers_where_that_costs_little) {
  const SplitPlanShape shape = {
      .batch = 8, .head_tiles = 4, .splits = 0, .workers = 33, .tile = 256, .span = 0};
  // 64 tiles: 8 a request, so 4 workers with 2 tiles each; the 33rd has none.
  auto whole = loads(shape, std::vector<int32_t>(8, 2048));
  EXPECT_EQ(whole.back(), std::pair(0, 0));
  whole.pop_back();
  for (const auto &load : whole)
    EXPECT_EQ(load, std::pair(1, 2));
  // 10 tiles for each of 16 workers, or 11 for some and none for one: worth it. 6, or 8 for some
  // and none for four: not, so some cross a boundary.
  const auto crossings = [&](int batch, int32_t len) {
    const auto all = loads({.batch = batch, .head_tiles = 8, .workers = 16, .tile = 256},
                           std::vector<int32_t>(batch, len));
    return std::count_if(all.begin(), all.end(), [](const auto &load) { return load.first > 1; });
  };
  EXPECT_EQ(crossings(5, 8192), 0);
  EXPECT_GT(crossings(12, 2048), 0);
}

TEST(SplitPlan, a_worker_with_more_requests_gets_fewer_keys) {
  // One of 64 tiles and 63 of one tile for 8 workers: half of the line is boundaries.
  std::vector<int32_t> lens(64, 64);
  lens[0] = 64 * 64;
  const auto all = loads({.batch = 64, .head_tiles = 8, .workers = 8, .tile = 64}, lens);
  EXPECT_EQ(all[0], std::pair(1, 23)); // the line has 64 + 63 + 64 = 191 tiles
  EXPECT_EQ(all[7].first, 12);
  EXPECT_EQ(all[7].second, 12);
}

// The detector itself: a worker whose head is forgotten loses keys.
TEST(SplitPlan, a_corrupted_plan_is_caught) {
  PlanCase c;
  c.shape = {.batch = 3, .head_tiles = 2, .splits = 0, .workers = 5, .tile = 16};
  c.lens = {100, 33, 250};
  const HostPlan host(c.shape, c.lens.data());
  ASSERT_EQ(plan_violation(c.lens, host.view()), "");
  std::vector<WorkerItems> workers(host.view().workers, host.view().workers + c.shape.workers);
  SplitPlan broken = host.view();
  broken.workers = workers.data();
  for (WorkerItems &w : workers) {
    if (w.head.num_splits == 0) continue;
    const WorkerItems whole = w;
    w.head.num_splits = 0;
    EXPECT_NE(plan_violation(c.lens, broken), "");
    w = whole;
    w.head.kv_begin += 1;
    EXPECT_NE(plan_violation(c.lens, broken), "");
    w = whole;
  }
}

TEST(SplitPlan, workers_fill_whole_waves) {
  EXPECT_EQ(balanced_workers(264, 8), 33);
  EXPECT_EQ(balanced_workers(264, 4), 66);
  EXPECT_EQ(balanced_workers(264, 1), 264);
  EXPECT_EQ(balanced_workers(264, 32), 8);  // 256 of 264
  EXPECT_EQ(balanced_workers(264, 40), 13); // 520 of 528 in two waves; one wave fills 240 of 264
  EXPECT_EQ(balanced_workers(264, 300), 3); // 900 of 1056 in four waves
  for (int64_t tiles = 1; tiles <= 264; ++tiles) {
    const int64_t blocks = balanced_workers(264, tiles) * tiles;
    const int64_t waves = (blocks + 263) / 264;
    EXPECT_LE(waves, 4) << tiles;
    EXPECT_GE(blocks * 100, waves * 264 * 70) << tiles;
  }
}

} // namespace
} // namespace assay
