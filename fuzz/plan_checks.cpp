// SPDX-License-Identifier: Apache-2.0
#include "fuzz/plan_checks.h"

#include <algorithm>

#include "fuzz/byte_reader.h"

namespace assay::fuzz {
namespace {

/// Every item of a plan, by request; and what its workers hold.
class PlanAudit {
public:
  PlanAudit(const PlanCase &c, const SplitPlan &plan)
      : c_(c), plan_(plan), requests_(static_cast<size_t>(c.shape.batch)),
        slot_used_(static_cast<size_t>(plan_slots(c.shape))) {}

  std::string run() {
    for (int64_t w = 0; w < c_.shape.workers; ++w)
      if (std::string e = worker(w); !e.empty()) return e + " (worker " + std::to_string(w) + ")";
    for (int32_t r = 0; r < c_.shape.batch; ++r)
      if (std::string e = request(r); !e.empty()) return e + " (request " + std::to_string(r) + ")";
    for (int64_t i = 0; i < int64_t{c_.shape.batch} * c_.shape.units; ++i)
      if (plan_.counters[i] != 0) return "a counter does not start at 0";
    return "";
  }

private:
  /// Tiles that fall to the busiest worker of a sound plan: its part of a line with boundaries, or
  /// what whole workers may have.
  int64_t fair_share() const {
    int64_t tiles = 0, boundaries = 0;
    for (int32_t len : c_.lens) {
      tiles += tiles_of(len, c_.shape.tile);
      boundaries += len > 0;
    }
    const int64_t workers = c_.shape.workers;
    const auto share = [&](int64_t line) { return (line + workers - 1) / workers; };
    return std::max(share(tiles + boundaries * kBoundaryTiles), share(tiles) + kMostExcessTiles);
  }

  std::string worker(int64_t w) {
    int64_t tiles = 0;
    for (const WorkItem &item : items_of_worker(plan_, w)) {
      if (item.request < 0 || item.request >= c_.shape.batch) return "request out of range";
      if (item.kv_begin < 0 || item.kv_begin > item.kv_end) return "a key range runs backwards";
      if (item.kv_end > c_.lens[item.request]) return "keys past the end of the request";
      if (item.num_splits > 1) {
        const int64_t slot = item.slot(item.split, c_.shape.slot_stride());
        if (slot < 0 || slot >= plan_slots(c_.shape)) return "a slot outside the workspace";
        if (slot_used_[slot]) return "a slot used twice";
        slot_used_[slot] = true;
      }
      tiles += tiles_of(item.kv_end - item.kv_begin, c_.shape.tile);
      requests_[item.request].push_back(item);
    }
    if (c_.shape.splits == 0 && tiles > fair_share()) return "more than a fair share of tiles";
    return "";
  }

  std::string request(int32_t r) {
    auto &items = requests_[r];
    if (items.empty()) return "nobody writes it";
    std::sort(items.begin(), items.end(),
              [](const WorkItem &a, const WorkItem &b) { return a.split < b.split; });
    int32_t next = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      const WorkItem &item = items[i];
      if (item.split != static_cast<int32_t>(i)) return "splits are not numbered 0, 1, ...";
      if (item.num_splits != static_cast<int32_t>(items.size())) return "wrong number of splits";
      if (item.kv_begin != next) return "keys missing or computed twice";
      if (item.first_slot != items[0].first_slot || item.next_slot != items[0].next_slot)
        return "splits disagree about their slots";
      next = item.kv_end;
    }
    if (next != c_.lens[r]) return "the last keys are missing";
    return "";
  }

  const PlanCase &c_;
  const SplitPlan &plan_;
  std::vector<std::vector<WorkItem>> requests_;
  std::vector<bool> slot_used_;
};

/// Lengths at several scales. The largest keeps the line of a batch inside the int32 line_indptr.
int32_t read_length(ByteReader &in) {
  switch (in.byte() % 4) {
  case 0:
    return 0;
  case 1:
    return in.integer(0, 255);
  case 2:
    return in.integer(0, 65535);
  default:
    return in.integer(0, 1 << 24);
  }
}

} // namespace

PlanCase decode_plan_case(Input input) {
  ByteReader in(input);
  PlanCase c;
  c.shape.batch = in.integer(1, 24);
  c.shape.units = in.integer(1, 8);
  c.shape.splits = in.integer(0, 1) == 0 ? 0 : in.integer(1, 100);
  c.shape.workers = c.shape.splits > 0 ? c.shape.batch * c.shape.splits : in.integer(1, 528);
  c.shape.tile = in.integer(1, 128);
  for (int i = 0; i < c.shape.batch; ++i)
    c.lens.push_back(read_length(in));
  return c;
}

std::string plan_violation(const PlanCase &c, const SplitPlan &plan) {
  return PlanAudit(c, plan).run();
}

std::string check_plan(Input input) {
  const PlanCase c = decode_plan_case(input);
  const HostPlan plan(c.shape, c.lens.data());
  return plan_violation(c, plan.view());
}

} // namespace assay::fuzz
