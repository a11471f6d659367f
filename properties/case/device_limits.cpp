// SPDX-License-Identifier: Apache-2.0
#include "properties/case/device_limits.h"

#include <algorithm>
#include <cstdint>

namespace assay {

Limits device_limits(Family family) {
  Limits limits = full_limits();
  if (family != Family::kPaged) return limits;
  limits.keys = 1 << 20;
  limits.slots = 1 << 27;
  return limits;
}

bool is_big(const Problem &p) {
  if (p.family != Family::kPaged) return false;
  const Limits host = full_limits();
  int64_t keys = 0, longest = 0;
  for (const int length : p.seq_lens) {
    keys += length;
    longest = std::max<int64_t>(longest, length);
  }
  // This answers for nearly all cases, at once.
  const int64_t with_pages = keys + static_cast<int64_t>(p.seq_lens.size()) * p.page_size;
  if (longest <= host.keys && with_pages * p.num_kv_heads <= host.slots) return false;
  return !problem_error(p, full_limits()).empty() &&
         problem_error(p, device_limits(p.family)).empty();
}

} // namespace assay
