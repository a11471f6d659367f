// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/big_case.h"

#include <exception>
#include <string>

#include "oracle/exact/tile_order.h"
#include "properties/big/big_check.h"
#include "properties/case/device_limits.h"
#include "properties/relate/symptom.h"

namespace assay {

CheckResult checked_case(const Property &property, const Problem &p, Sut &sut, bool *threw) {
  if (!is_big(p) || sut.kernel().target != ASSAY_TARGET_CUDA)
    return checked(property, p, sut, threw);
  if (std::string(property.name) != "within_budget")
    return CheckResult::discard("of a case that no host holds within_budget alone is checked");
  try {
    const std::unique_ptr<Machine> gpu = make_gpu();
    if (gpu == nullptr) return CheckResult::discard("no GPU");
    return big_within_budget(p, sut.kernel(), *gpu);
  } catch (const oracle::OrderError &e) { // the kernel's own statement
    return CheckResult::fail(e.what(), symptom_of(e));
  } catch (const std::exception &e) {
    if (threw != nullptr) *threw = true;
    return CheckResult::discard(std::string("exception: ") + e.what());
  }
}

} // namespace assay
