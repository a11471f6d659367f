// SPDX-License-Identifier: Apache-2.0
#include "properties/run/checked.h"

#include "oracle/exact/tile_order.h"
#include "properties/relate/symptom.h"

namespace assay {

CheckResult checked(const std::function<CheckResult()> &check, bool *threw) {
  try {
    return check();
  } catch (const oracle::OrderError &e) { // the kernel's own statement
    return CheckResult::fail(e.what(), symptom_of(e));
  } catch (const std::exception &e) {
    if (threw != nullptr) *threw = true;
    return CheckResult::discard(std::string("exception: ") + e.what());
  }
}

CheckResult checked(const Property &property, const Problem &p, Sut &sut, bool *threw) {
  return checked([&] { return property.check(p, sut); }, threw);
}

} // namespace assay
