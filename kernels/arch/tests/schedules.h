// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/launch.h"

namespace assay::n_simt::arch_test {

/// Calls f(schedule) for each order with each completion of copies, 40 seeds where one is drawn.
template <class F>
void each_schedule(F f) {
  for (const simt::Order order :
       {simt::Order::kAscending, simt::Order::kDescending, simt::Order::kSeeded})
    for (const auto copies : {simt::CopyCompletion::kAtWait, simt::CopyCompletion::kAtIssue,
                              simt::CopyCompletion::kSeeded})
      for (uint64_t seed = 0; seed < (order == simt::Order::kSeeded ? 40 : 1); ++seed)
        f(simt::Schedule{order, copies, seed});
}

} // namespace assay::n_simt::arch_test
