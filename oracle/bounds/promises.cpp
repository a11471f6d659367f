// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/promises.h"

namespace assay::oracle {
namespace {

using K = assay_kernel;

constexpr const char *kDeterminism[] = {"none", "run_to_run"};
constexpr const char *kBatchInvariance[] = {"none", "fixed", "always"};
constexpr const char *kNanContract[] = {"none", "values", "scores", "all"};
constexpr const char *kYesOrNo[] = {"false", "true"};

constexpr Promise promise(const char *name, int32_t K::*field, std::span<const char *const> words) {
  return {.name = name, .field = field, .bit = 0, .words = words};
}
constexpr Promise capability(const char *name, assay_capabilities bit,
                             const char *argument = nullptr, const char *feature = nullptr) {
  return {.name = name,
          .field = nullptr,
          .bit = bit,
          .words = kYesOrNo,
          .later = true,
          .argument = argument,
          .feature = feature};
}

constexpr Promise kPromises[] = {
    promise("determinism", &K::determinism, kDeterminism),
    promise("batch_invariance", &K::batch_invariance, kBatchInvariance),
    {.name = "nan_contract",
     .field = &K::nan_contract,
     .bit = 0,
     .words = kNanContract,
     .bits = true},
    capability("checks_arguments", ASSAY_CHECKS_ARGUMENTS),
    capability("ragged_queries", ASSAY_RAGGED_QUERIES, "qo_indptr", "ragged queries"),
    capability("shards", ASSAY_SHARDS, "global_lens", "shard"),
    capability("page_lists", ASSAY_PAGE_LISTS),
};

} // namespace

std::span<const Promise> promises() { return kPromises; }

assay_capabilities known_capabilities() {
  assay_capabilities all = 0;
  for (const Promise &row : kPromises)
    all |= row.bit;
  return all;
}

} // namespace assay::oracle
