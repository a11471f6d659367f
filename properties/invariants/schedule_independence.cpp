// SPDX-License-Identifier: Apache-2.0
// Property: the order of threads and blocks and the time at which async copies land never change a
// bit. Catches: missing barriers, missing waits, races between blocks. Bitwise; executor only.
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"

namespace assay {

CheckResult schedule_independence(const Problem &p, Sut &sut) {
  Outcome first = run_problem(p, sut);
  if (!first.ok()) return first.check;
  const ScheduleSpec schedules[] = {
      {BlockOrder::kAscending, CopyTiming::kAtWait, p.schedule.seed},
      {BlockOrder::kDescending, CopyTiming::kAtIssue, p.schedule.seed},
      {BlockOrder::kSeeded, CopyTiming::kSeeded, p.schedule.seed + 1},
  };
  for (const ScheduleSpec &schedule : schedules) {
    if (schedule == p.schedule) continue;
    Problem other = p;
    other.schedule = schedule;
    Outcome second = run_problem(other, sut);
    std::string what = "schedule " + std::string(name_of(schedule.order)) + ", copies " +
                       std::string(name_of(schedule.copies));
    if (!second.ok()) return second.check;
    if (CheckResult c = same_bits(first.after, second.after, what); !c.passed()) return c;
  }
  return CheckResult::pass();
}

} // namespace assay
