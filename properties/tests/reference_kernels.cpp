// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/reference_kernels.h"

#include <cstdlib>
#include <cstring>

#include "properties/tests/field_reference.h"
#include "properties/tests/reference_attention.h"
#include "properties/tests/reference_merges.h"

namespace assay::reference {

thread_local Bug bug = Bug::kNone;

namespace {

/// Every parameter struct begins with struct_size, target, dtype.
assay_status supports(const void *params) {
  return static_cast<const assay_paged_params *>(params)->dtype == ASSAY_FIELD61 ? ASSAY_UNSUPPORTED
                                                                                 : ASSAY_OK;
}
assay_status supports_field(const void *) { return ASSAY_OK; }
/// Runs the kernel over ASSAY_FIELD61 or floats, by the call's dtype.
template <class P, assay_status (*kFloat)(const void *), assay_status (*kField)(const P &)>
assay_status run_either(const void *params) {
  const auto &p = *static_cast<const P *>(params);
  return p.dtype == ASSAY_FIELD61 ? kField(p) : kFloat(params);
}
constexpr auto kRunV1 = run_either<assay_paged_params, run_v1, run_field_paged>;
constexpr auto kRunMergeStates =
    run_either<assay_merge_states_params, run_merge_states, run_field_merge_states>;
const char *last_error() { return ""; }

constexpr assay_arithmetic kScalar = {.mma_block = 0,
                                      .mma_fraction_bits = 0,
                                      .p_format = ASSAY_FORMAT_FP32,
                                      .sum_format = ASSAY_FORMAT_FP32,
                                      .exponential = ASSAY_EXP_BASE2,
                                      .sum_depth = kTile,
                                      .q_abs_error = 0,
                                      .exp2_rel_error = 0x1p-23,
                                      .log2_abs_error = 0x1p-22,
                                      .rcp_rel_error = 0x1p-23,
                                      .tanh_abs_error = 0x1p-22,
                                      .tile_tokens = kTile,
                                      .max_parallel_states = 1,
                                      .max_splits = 0,
                                      .merge_stages = 0};

assay_arithmetic arithmetic(bool splits) {
  assay_arithmetic a = kScalar;
  a.max_splits = splits ? 1 << 16 : 0;
  a.merge_stages = splits;
  return a;
}

assay_kernel entry(const char *name, assay_family family, assay_status (*run)(const void *),
                   assay_status (*workspace)(const void *, uint64_t *)) {
  return {sizeof(assay_kernel),
          name,
          family,
          ASSAY_TARGET_SIMT,
          ASSAY_DETERMINISM_RUN_TO_RUN,
          ASSAY_BATCH_ALWAYS,
          ASSAY_NAN_VALUES | ASSAY_NAN_SCORES,
          arithmetic(workspace != nullptr),
          run == kRunV1 || run == kRunMergeStates ? supports_field : supports,
          workspace,
          run,
          last_error,
          nullptr,
          nullptr,
          nullptr,
          (family == ASSAY_FAMILY_PAGED ? ASSAY_RAGGED_QUERIES | ASSAY_SHARDS : 0u) |
              (family <= ASSAY_FAMILY_CASCADE ? ASSAY_PAGE_LISTS : 0u)};
}

const assay_kernel kKernels[] = {
    entry("reference_v1", ASSAY_FAMILY_PAGED, kRunV1, nullptr),
    entry("reference_v2", ASSAY_FAMILY_PAGED, run_v2, paged_workspace),
    entry("reference_cascade", ASSAY_FAMILY_CASCADE, run_cascade, cascade_workspace),
    entry("reference_merge_state", ASSAY_FAMILY_MERGE_STATE, run_merge_state, nullptr),
    entry("reference_merge_states", ASSAY_FAMILY_MERGE_STATES, kRunMergeStates, nullptr),
};
const assay_plugin kPlugin = {
    sizeof(assay_plugin), ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, "reference", 5, kKernels};

} // namespace

const assay_plugin &plugin() { return kPlugin; }

const assay_kernel &kernel(const char *name) {
  for (const assay_kernel &k : kKernels)
    if (std::strcmp(k.name, name) == 0) return k;
  std::abort();
}

} // namespace assay::reference
