// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings/big_case.h"

#include <string>

#include "properties/big/big_check.h"
#include "properties/case/device_limits.h"

namespace assay {

CheckResult checked_case(const Property &property, const Case &c, Sut &sut, bool *threw) {
  for (const Problem &p : c.before)
    checked(property, p, sut, nullptr);
  return checked_case(property, c.problem, sut, threw);
}

CheckResult checked_case(const Property &property, const Problem &p, Sut &sut, bool *threw) {
  if (!is_big(p) || sut.kernel().target != ASSAY_TARGET_CUDA)
    return checked(property, p, sut, threw);
  if (std::string(property.name) != "within_budget")
    return CheckResult::discard("of a case that no host holds within_budget alone is checked");
  return checked(
      [&] {
        const std::unique_ptr<Machine> gpu = make_gpu();
        if (gpu == nullptr) return CheckResult::discard("no GPU");
        return big_within_budget(p, sut.kernel(), *gpu);
      },
      threw);
}

} // namespace assay
