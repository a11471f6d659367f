// SPDX-License-Identifier: Apache-2.0
// What the lines of a journal add up to.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/tools/campaign/residual.h"

namespace assay::campaign {

/// After a slice of a task, and of a fuzz target on the way.
struct Point {
  double seconds = 0;      ///< time of the task so far
  uint64_t executions = 0; ///< executions so far
  uint64_t features = 0;   ///< libFuzzer's count; for `check` (kernel, property, class) seen
};

struct TaskTotals {
  int slices = 0;                         ///< begun
  int lost = 0;                           ///< begun and never ended: the program was killed
  uint64_t first_seed = 0, last_seed = 0; ///< seeds of slices begun; the last is the largest
  double seconds = 0;                     ///< time of slices that ended
  uint64_t executions = 0;                ///< inputs of a fuzz target, cases of check
  uint64_t features = 0;
  int failing = 0;          ///< slices in a row that ended with the same finding, up to the last
  std::string last_finding; ///< its key
  std::string trouble;      ///< the last slice could not do its work: why
  std::vector<Point> growth;

  /// Features of the last quarter of the time, as a share of all.
  double still_growing() const;
};

struct FindingTotals {
  std::string task, message, folder;
  int times = 0;
  int64_t first_seen = 0; ///< seconds since 1970
};

struct Totals {
  std::map<std::string, TaskTotals> tasks;
  std::map<std::string, FindingTotals> findings; ///< by key
  std::set<std::string> classes;                 ///< for check: kernel/property/class seen
  Residual residual; ///< for check: classes that its next run shows first
  int sessions = 0;
  double seconds = 0; ///< time of all slices
};

/// Lines of slices: {"begin": task, "slice", "seed", "at"} and {"end": task, "slice", "seconds",
/// "executions", "features", "progress": [[executions, features], ...], "findings": [{"key",
/// "message", "folder"}], "classes": [...], "trouble"}. Others count sessions.
Totals add_up(const std::vector<nlohmann::json> &lines);

} // namespace assay::campaign
