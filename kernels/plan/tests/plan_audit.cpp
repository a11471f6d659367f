// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/tests/plan_audit.h"

#include "kernels/plan/host_plan.h"

#include <algorithm>
#include <vector>

namespace assay {
namespace {

/// Looks at what every worker of a plan holds, and then at all items of every request.
class PlanAudit {
public:
  PlanAudit(std::span<const int32_t> lens, const SplitPlan &plan)
      : lens_(lens), plan_(plan), shape_(plan.shape),
        requests_(static_cast<size_t>(plan.shape.batch)),
        slot_used_(static_cast<size_t>(plan_slots(plan.shape))) {}

  std::string run() {
    for (int64_t w = 0; w < shape_.workers; ++w)
      if (std::string e = worker(w); !e.empty()) return e + " (worker " + std::to_string(w) + ")";
    for (int32_t r = 0; r < shape_.batch; ++r)
      if (std::string e = request(r); !e.empty()) return e + " (request " + std::to_string(r) + ")";
    for (int64_t i = 0; i < int64_t{shape_.batch} * shape_.head_tiles; ++i)
      if (plan_.counters[i] != 0) return "a counter does not start at 0";
    return "";
  }

private:
  /// The most tiles that a worker of a sound plan has: its part of a line with boundaries, or what
  /// whole workers may have.
  int64_t fair_share() const {
    int64_t tiles = 0, boundaries = 0;
    for (int32_t len : lens_) {
      tiles += tiles_of(len, shape_.tile);
      boundaries += len > 0;
    }
    const int64_t workers = shape_.workers;
    const auto share = [&](int64_t line) { return (line + workers - 1) / workers; };
    return std::max(share(tiles + boundaries * kBoundaryTiles), share(tiles) + kMaxExcessTiles);
  }

  std::string worker(int64_t w) {
    int64_t tiles = 0;
    for (const WorkItem &item : items_of_worker(plan_, w)) {
      if (item.request < 0 || item.request >= shape_.batch) return "request out of range";
      if (item.kv_begin < 0 || item.kv_begin > item.kv_end) return "a key range runs backwards";
      if (item.kv_end > lens_[item.request]) return "keys past the end of the request";
      if (item.num_splits > 1) {
        const int64_t slot = item.slot(item.split, shape_.slot_stride());
        if (slot < 0 || slot >= plan_slots(shape_)) return "a slot outside the workspace";
        if (slot_used_[slot]) return "a slot used twice";
        slot_used_[slot] = true;
      }
      tiles += tiles_of(item.kv_end - item.kv_begin, shape_.tile);
      requests_[item.request].push_back(item);
    }
    if (shape_.splits == 0 && tiles > fair_share()) return "more than a fair share of tiles";
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
    if (next != lens_[r]) return "the last keys are missing";
    return "";
  }

  std::span<const int32_t> lens_;
  const SplitPlan &plan_;
  const SplitPlanShape &shape_;
  std::vector<std::vector<WorkItem>> requests_;
  std::vector<bool> slot_used_;
};

} // namespace

std::string plan_violation(std::span<const int32_t> lens, const SplitPlan &plan) {
  return PlanAudit(lens, plan).run();
}

} // namespace assay
