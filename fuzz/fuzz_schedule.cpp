// SPDX-License-Identifier: Apache-2.0
// A few small cases of every kernel under schedules that the input sets: the order of threads and
// blocks, when copies complete, and where a warp falls behind all others. In the preset `hazards`
// every load and store of shared memory is checked and may be such a place.
//   1. No hazard of the executor under any of them, nor under the default schedule.
//   2. The bits of the default schedule, where the kernel declares them.
#include "fuzz/cases/schedule_judge.h"
#include "fuzz/cases/under_test.h"

namespace {

std::string check_schedule(assay::fuzz::Input input) {
  static assay::fuzz::ScheduleJudge judge(assay::fuzz::kernels_under_test());
  return judge.check(input);
}

} // namespace

ASSAY_FUZZ_TARGET(check_schedule)
