// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/promises.h"

namespace assay::oracle {
namespace {

using K = assay_kernel;

constexpr const char *kDeterminism[] = {"none", "run_to_run"};
constexpr const char *kBatchInvariance[] = {"none", "fixed", "always"};
constexpr const char *kNanContract[] = {"none", "values", "scores", "all"};
constexpr const char *kYesOrNo[] = {"false", "true"};

constexpr Promise capability(const char *name, int32_t K::*field, const char *argument,
                             const char *feature) {
  return {name, field, kYesOrNo, false, true, argument, feature};
}

constexpr Promise kPromises[] = {
    {"determinism", &K::determinism, kDeterminism},
    {"batch_invariance", &K::batch_invariance, kBatchInvariance},
    {"nan_contract", &K::nan_contract, kNanContract, true},
    {"checks_arguments", &K::checks_arguments, kYesOrNo, false, true},
    capability("ragged_queries", &K::ragged_queries, "query_start", "ragged queries"),
    capability("shards", &K::shards, "global_lens", "shard"),
};

} // namespace

std::span<const Promise> promises() { return kPromises; }

} // namespace assay::oracle
