// SPDX-License-Identifier: Apache-2.0
// Internal: a thread of the host in the place of a GPU's teams.
#pragma once

#include <cmath>
#include <vector>

#include "oracle/bounds/replay_tiles.h"
#include "oracle/device/tiers.h"

namespace assay::oracle::device {

struct OneThread {
  int rank() const { return 0; }
  int size() const { return 1; }
  void sync() const {}
  double most(double x) const { return x; }
  double sum(double x) const { return x; }
  bool any(bool flag) const { return flag; }
  void count(unsigned long long *at) const { ++*at; }
};

/// A part of a team that works on a tile or a state.
struct OneThreadLanes : OneLane {
  static int number() { return 0; }
  static int count() { return 1; }
  static double most(double x) { return x; }
  static double sum(double x) { return x; }
};

/// What the text leaves, and where.
class Results {
public:
  Results(int64_t pairs, int dims, bool elements)
      : rows(static_cast<size_t>(pairs)), budgets(BudgetSizes::kCounts) {
    constexpr ElementBounds kNone{0.0, 0.0, NAN};
    if (elements)
      exported.assign(rows.size() * (static_cast<size_t>(dims) + 1), {kNone, kNone, kNone});
  }

  template <class Call>
  void pass_to(Call &call) {
    static_assert(sizeof(uint64_t) == sizeof(unsigned long long));
    call.rows = rows.data();
    call.budgets = reinterpret_cast<unsigned long long *>(budgets.data());
    if (!exported.empty()) call.elements = exported.data()->data();
  }
  TierReport report(const RowOutputs &out, bool has_lse) {
    TierReport report = report_of(out, has_lse, std::move(rows), budgets);
    report.elements = std::move(exported);
    return report;
  }

  std::vector<TierRow> rows;
  std::vector<uint64_t> budgets;
  std::vector<std::array<ElementBounds, 3>> exported;
};

inline const void *in_place(const void *from, size_t) { return from; }

} // namespace assay::oracle::device
