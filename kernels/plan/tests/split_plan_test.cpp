// SPDX-License-Identifier: Apache-2.0
// SplitPlan as a pure function: every key computed exactly once, every slot inside the workspace
// and used once, segments enumerate exactly the items the workers produce.
#include "kernels/plan/host_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

namespace assay {
namespace {

struct HostLoad {
  int32_t operator()(const int32_t *p) const { return *p; }
};

struct PlanCase {
  SplitPlanShape shape;
  std::vector<int32_t> lens;
};

/// Checks one plan; returns a description of the first violation, empty when sound.
std::string violation(const PlanCase &c, const SplitPlan &plan) {
  std::map<std::pair<int, int>, std::vector<WorkItem>> segments;
  std::set<int64_t> slots;
  for (int64_t w = 0; w < c.shape.workers; ++w) {
    ItemCursor cursor(plan, w, HostLoad{});
    WorkItem item;
    while (cursor.next(item)) {
      if (item.kv_begin > item.kv_end || item.kv_begin < 0) return "range runs backwards";
      if (item.request < 0 || item.request >= c.shape.batch) return "request out of range";
      if (!item.whole) {
        if (item.slot < 0 || item.slot >= plan_slots(c.shape)) return "slot outside the workspace";
        if (!slots.insert(item.slot).second) return "slot written twice";
      }
      segments[{item.request, item.unit}].push_back(item);
    }
  }
  for (int r = 0; r < c.shape.batch; ++r)
    for (int u = 0; u < c.shape.units; ++u) {
      auto &items = segments[{r, u}];
      int expected = 0;
      for (const WorkItem &item : items) {
        if (item.kv_begin != expected) return "keys missing or repeated";
        expected = item.kv_end;
      }
      if (expected != c.lens[r]) return "keys missing at the end";
      const SegmentSlots s = segment_slots(plan, r, u, HostLoad{});
      const bool direct = items.size() == 1 && items[0].whole;
      if (c.lens[r] == 0) {
        if (s.count != 0) return "an empty segment has slots";
        continue;
      }
      if (s.count != static_cast<int>(items.size())) return "slot count differs from items";
      if (direct != (s.count == 1)) return "whole flag disagrees with the slot count";
      for (int i = 0; i < s.count && !direct; ++i)
        if (s.slot(i) != items[i].slot) return "slots out of order";
    }
  return "";
}

PlanCase random_case(std::mt19937 &rng) {
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(rng() % (high - low + 1));
  };
  PlanCase c;
  c.shape = {.batch = pick(1, 9),
             .units = pick(1, 5),
             .splits = 0,
             .workers = pick(1, 40),
             .tile = pick(1, 64)};
  if (pick(0, 2) == 0) {
    c.shape.splits = pick(1, 100);
    c.shape.workers = c.shape.batch * c.shape.units * c.shape.splits;
  }
  for (int i = 0; i < c.shape.batch; ++i)
    c.lens.push_back(pick(0, 3) == 0 ? 0 : pick(0, pick(0, 1) ? 3 : 700));
  return c;
}

TEST(SplitPlan, covers_every_key_exactly_once) {
  std::mt19937 rng(1);
  int empty_rows = 0, shared = 0, idle_workers = 0;
  for (int i = 0; i < 20000; ++i) {
    const PlanCase c = random_case(rng);
    const std::vector<int32_t> buffer = host_plan(c.shape, c.lens.data());
    const SplitPlan plan = view_plan(c.shape, c.lens.data(), buffer.data());
    ASSERT_EQ(violation(c, plan), "") << "case " << i;
    for (int32_t len : c.lens)
      empty_rows += len == 0;
    if (c.shape.splits == 0) {
      const int64_t total = int64_t{buffer[c.shape.batch]} * c.shape.units;
      idle_workers += total < c.shape.workers;
      shared += total > 0 && segment_slots(plan, 0, 0, HostLoad{}).count > 1;
    }
  }
  // The interesting classes did occur.
  EXPECT_GT(empty_rows, 1000);
  EXPECT_GT(shared, 100);
  EXPECT_GT(idle_workers, 100);
}

TEST(SplitPlan, balanced_ranges_differ_by_at_most_one_tile) {
  std::mt19937 rng(2);
  for (int i = 0; i < 1000; ++i) {
    const int64_t total = 1 + rng() % 100000, active = 1 + rng() % std::min<int64_t>(total, 300);
    int64_t low = total, high = 0;
    for (int64_t w = 0; w < active; ++w) {
      const int64_t n = worker_begin(w + 1, active, total) - worker_begin(w, active, total);
      low = std::min(low, n);
      high = std::max(high, n);
      for (int64_t x : {worker_begin(w, active, total), worker_begin(w + 1, active, total) - 1})
        ASSERT_EQ(worker_of(x, active, total), w);
    }
    ASSERT_LE(high - low, 1);
    ASSERT_GE(low, 1);
  }
}

// The detector itself: a worker told to start at a later request loses tiles.
TEST(SplitPlan, a_corrupted_plan_is_caught) {
  PlanCase c;
  c.shape = {.batch = 3, .units = 2, .splits = 0, .workers = 5, .tile = 16};
  c.lens = {100, 33, 250};
  std::vector<int32_t> buffer = host_plan(c.shape, c.lens.data());
  ASSERT_EQ(violation(c, view_plan(c.shape, c.lens.data(), buffer.data())), "");
  buffer[c.shape.batch + 1 + 1] = 2;
  EXPECT_NE(violation(c, view_plan(c.shape, c.lens.data(), buffer.data())), "");
}

TEST(SplitPlan, host_items_lists_a_segment_in_split_order) {
  const std::vector<int32_t> lens = {0, 500, 64};
  const SplitPlanShape shape = {.batch = 3, .units = 2, .splits = 0, .workers = 7, .tile = 64};
  const std::vector<int32_t> buffer = host_plan(shape, lens.data());
  const SplitPlan plan = view_plan(shape, lens.data(), buffer.data());
  EXPECT_TRUE(host_items(plan, 0, 1).empty());
  int end = 0;
  for (const WorkItem &item : host_items(plan, 1, 1)) {
    EXPECT_EQ(item.kv_begin, end);
    end = item.kv_end;
  }
  EXPECT_EQ(end, 500);
}

} // namespace
} // namespace assay
