// SPDX-License-Identifier: Apache-2.0
#include "properties/run/processors.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace assay {

int usable_processors() {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof own, &own) == 0) return std::max(1, CPU_COUNT(&own));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

} // namespace assay
