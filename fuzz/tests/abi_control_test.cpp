// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_abi: entry points with one defect each must be caught by the seed
// corpus.
#include "fuzz/abi_checks.h"

#include <gtest/gtest.h>

#include "fuzz/tests/seeds.h"

namespace assay::fuzz {
namespace {

std::string violation_of(const AbiEntries &entries) {
  return first_violation("fuzz_abi", [&](Input input) { return check_abi_with(entries, input); });
}

TEST(AbiControl, the_library_passes) { EXPECT_EQ(violation_of({}), ""); }

TEST(AbiControl, supports_takes_everything) {
  EXPECT_NE(violation_of({.v1_supports = [](const assay_paged_params *) -> assay_status {
              return ASSAY_OK;
            }}),
            "");
}

TEST(AbiControl, the_call_refuses_by_another_status) {
  EXPECT_NE(violation_of({.merge_states = [](const assay_merge_states_params *) -> assay_status {
              return ASSAY_OK;
            }}),
            "");
}

TEST(AbiControl, status_unknown_to_the_header) {
  EXPECT_NE(violation_of({.cascade_supports =
                              [](const assay_cascade_params *p) {
                                return p->batch == 0 ? 99 : assay_cascade_attention_supports(p);
                              }}),
            "");
}

TEST(AbiControl, answer_changes) {
  EXPECT_NE(violation_of({.merge_state_supports =
                              [](const assay_merge_state_params *p) {
                                static int calls = 0;
                                return ++calls % 2 == 0 ? ASSAY_UNSUPPORTED
                                                        : assay_merge_state_supports(p);
                              }}),
            "");
}

TEST(AbiControl, size_written_by_a_failure) {
  EXPECT_NE(violation_of({.v2_size =
                              [](const assay_paged_params *p, uint64_t *bytes) {
                                *bytes = 0;
                                return assay_paged_attention_v2_workspace_size(p, bytes);
                              }}),
            "");
}

TEST(AbiControl, workspace_not_looked_at) {
  EXPECT_NE(violation_of({.v2_size =
                              [](const assay_paged_params *p, uint64_t *bytes) {
                                const assay_status status =
                                    assay_paged_attention_v2_workspace_size(p, bytes);
                                if (status == ASSAY_OK) *bytes += uint64_t{1} << 41;
                                return status;
                              }}),
            "");
}

TEST(AbiControl, plan_into_no_room) {
  EXPECT_NE(violation_of(
                {.v2_plan = [](const assay_paged_params *) -> assay_status { return ASSAY_OK; }}),
            "");
}

TEST(AbiControl, failure_without_a_message) {
  EXPECT_NE(violation_of({.last_error = [] { return ""; }}), "");
}

} // namespace
} // namespace assay::fuzz
