// SPDX-License-Identifier: Apache-2.0
// Whole small cases, fast: what fuzz_paged and fuzz_cascade check.
#pragma once

#include "fuzz/cases/case_input.h"
#include "fuzz/cases/under_test.h"
#include "properties/run/registry.h"

namespace assay::fuzz {

/// At most 3 requests, 4 query heads a kv head, 288 keys in 512 slots, head_dim 64: several tiles
/// for a warp, and v2 and the tree have something to split and to share.
const CaseFormat &paged_format();
/// At most 4 requests, 8 query heads a kv head, 3 levels, 288 keys a segment in 640 slots: a level
/// may go to each of the cascade's three kernels, and give it several tiles.
const CaseFormat &cascade_format();

/// The first byte picks one of the plugin's simt kernels of the format's family, which runs once:
/// within_budget by T0, T1 and LSE, and the executor's hazards. Tells libFuzzer of errors, tiles
/// and splits (paths/feedback.h).
std::string check_case_with(const assay_plugin &plugin, const CaseFormat &format, Input input);
inline std::string check_paged(Input input) {
  return check_case_with(kernels_under_test(), paged_format(), input);
}
inline std::string check_cascade(Input input) {
  return check_case_with(kernels_under_test(), cascade_format(), input);
}

/// Kernels of the simt target that take cases of the family.
std::vector<const assay_kernel *> simt_kernels(const assay_plugin &plugin, Family family);

/// Empty where the property holds on the kernel or says nothing; else what is wrong, and the case
/// as text. Takes the result as well, for its figures.
std::string violation(const Property &property, const Problem &p, Sut &sut, CheckResult &result);

} // namespace assay::fuzz
