// SPDX-License-Identifier: Apache-2.0
// The planner on the host, for tests, tools and callers that know the lengths.
#pragma once

#include "kernels/plan/plan_build.h"
#include "kernels/plan/split_plan.h"

#include <cstddef>
#include <vector>

namespace assay {

/// A plan buffer in host memory.
class HostPlan {
public:
  /// Has the bytes that plan_kernel writes for these lengths. PlanInput tells of `covered`.
  HostPlan(const SplitPlanShape &shape, const int32_t *seq_lens, const int32_t *covered = nullptr);

  const void *data() const { return words_.data(); }
  size_t bytes() const { return static_cast<size_t>(plan_layout(shape_).bytes); }
  /// Valid while this object lives.
  SplitPlan view() const;

private:
  SplitPlanShape shape_;
  std::vector<WorkItem> words_; // for its alignment
};

/// A view of a buffer that HostPlan or plan_kernel has written.
SplitPlan view_plan(const SplitPlanShape &shape, const void *buffer);

/// The items of a worker, in the order in which it computes them.
std::vector<WorkItem> items_of_worker(const SplitPlan &plan, int64_t worker);

/// Items of requests in split order, for declarations. No plan is made: one of 65,536 requests in
/// 64 splits has 600 MB. `seq_lens` and `covered` must outlive it.
class RequestItems {
public:
  RequestItems(const SplitPlanShape &shape, const int32_t *seq_lens,
               const int32_t *covered = nullptr);
  RequestItems(const RequestItems &) = delete;
  RequestItems &operator=(const RequestItems &) = delete;

  std::vector<WorkItem> of(int32_t request) const;

private:
  PlanInput input_;
  std::vector<int32_t> line_indptr_, order_;
  std::vector<int32_t> index_of_; ///< [batch] where each request lies in order_
};

} // namespace assay
