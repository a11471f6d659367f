// SPDX-License-Identifier: Apache-2.0
// The parts of merged(): each takes documents that are known to belong together.
#pragma once

#include "properties/tools/report/merge.h"

namespace assay::report {

json merged_runs(const std::vector<Shard> &shards);
json merged_kernels(const std::vector<Shard> &shards, const json &runs);
json merged_properties(const std::vector<Shard> &shards);
json merged_replayed(const std::vector<Shard> &shards);
/// `found` and `groups`.
void merge_findings(const std::vector<Shard> &shards, json &document);

} // namespace assay::report
