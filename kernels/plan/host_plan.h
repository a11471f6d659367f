// SPDX-License-Identifier: Apache-2.0
// The planner on the host, for tests, tools and callers that know the lengths.
#pragma once

#include "kernels/plan/split_plan.h"

#include <vector>

namespace assay {

/// Bytes-identical to what plan_kernel writes: tile_indptr [batch + 1], then worker_request
/// [workers].
std::vector<int32_t> host_plan(const SplitPlanShape &shape, const int32_t *seq_lens);

/// A view of a buffer laid out as above.
SplitPlan view_plan(const SplitPlanShape &shape, const int32_t *seq_lens, const int32_t *buffer);

/// Items of segment (request, unit) in split order, empty ones included. Walks the whole plan's
/// workers of that segment; for tests and declarations, not for the hot path.
std::vector<WorkItem> host_items(const SplitPlan &plan, int32_t request, int32_t unit);

} // namespace assay
