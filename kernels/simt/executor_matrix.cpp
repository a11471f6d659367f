// SPDX-License-Identifier: Apache-2.0
// Fences between threads and what runs beside them, and what happens to a matrix operation from its
// issue to the wait that covers it.
#include <algorithm>
#include <utility>

#include "kernels/simt/executor.h"

namespace assay::simt {

// ---- fences ----

void Executor::fence_async_proxy(Site site) {
  fibers_[running_].site = site;
  fibers_[running_].proxy_fence = order_.moment(running_);
}

void Executor::fence_mbarrier_init(Site site) {
  fibers_[running_].site = site;
  fibers_[running_].init_fence = order_.moment(running_);
}

void Executor::check_proxy(uint32_t thread, const Writer &writer, const void *address, bool matrix,
                           Site site) {
  // What a bulk copy wrote is of the async proxy itself.
  if (writer.stamp == 0 || writer.thread >= threads_ ||
      fibers_[writer.thread].proxy_fence >= writer.stamp)
    return;
  report(thread, HazardKind::kMissingFence,
         std::string(matrix ? "a matrix operation reads" : "a bulk copy overwrites") +
             " shared offset " + std::to_string(part_->shared.offset_of(address)) +
             ", which thread " + std::to_string(writer.thread) + " wrote at " +
             to_string(writer.site.site()) + " without fence_async_proxy since",
         site, writer.site.site());
}

// ---- matrix operations, called once per warp ----

void Executor::matrix_issue(std::unique_ptr<MatrixOperation> operation, Site site) {
  const uint32_t warp_index = running_ / kLanes;
  Warp &warp = warps_[warp_index];
  if (!warp.fenced)
    report(running_, HazardKind::kMissingFence,
           "a matrix operation without wgmma_fence since the last commit", site, warp.committed);
  std::vector<Site> &steps = matrix_steps_[warp_index / kGroupWarps];
  if (warp.matrix_steps == steps.size())
    steps.push_back(site);
  else if (!(steps[warp.matrix_steps] == site))
    report(running_, HazardKind::kDivergentBarrier,
           "operation " + std::to_string(warp.matrix_steps) +
               " of the warpgroup is another one in another warp, at " +
               to_string(steps[warp.matrix_steps]),
           site, steps[warp.matrix_steps]);
  ++warp.matrix_steps;
  if (operation->overwrites())
    for (const PendingMatrix &pending : warp.matrix)
      if (pending.group != warp.matrix_groups &&
          pending.operation->result().holds(operation->result()))
        report(running_, HazardKind::kAsyncInFlightWrite,
               "the result of the matrix operation issued at " + to_string(pending.site) +
                   " is overwritten before a wait",
               site, pending.site);
  const bool first = warp.matrix.empty() || warp.matrix.back().complete;
  const bool now =
      first && (schedule_.copies == CopyCompletion::kAtIssue ||
                (schedule_.copies == CopyCompletion::kSeeded && random_.below(2) == 0));
  if (now)
    operation->complete();
  else
    operation->postpone();
  const auto number = static_cast<uint32_t>(matrix_reads_.size());
  matrix_reads_.push_back({kInFlight, site});
  warp.matrix.push_back({std::move(operation), now, warp.matrix_groups, number, site});
}

void Executor::matrix_fence(Site) { warps_[running_ / kLanes].fenced = true; }

void Executor::matrix_commit(Site site) {
  Warp &warp = warps_[running_ / kLanes];
  ++warp.matrix_groups;
  warp.fenced = false;
  warp.committed = site;
}

void Executor::matrix_wait(uint32_t pending_groups, std::span<const Registers> named, Site site) {
  Warp &warp = warps_[running_ / kLanes];
  const uint32_t complete_below =
      warp.matrix_groups > pending_groups ? warp.matrix_groups - pending_groups : 0;
  const uint32_t now = order_.moment(running_);
  auto pending = warp.matrix.begin();
  for (; pending != warp.matrix.end() && pending->group < complete_below; ++pending) {
    check_named(*pending, named, true, site);
    if (!pending->operation->operands_kept())
      report(running_, HazardKind::kAsyncInFlightWrite,
             "registers that the matrix operation issued at " + to_string(pending->site) +
                 " reads are overwritten before this wait",
             site, pending->site);
    if (!pending->complete) pending->operation->complete();
    matrix_reads_[pending->number].done = now;
  }
  warp.matrix.erase(warp.matrix.begin(), pending);
  for (const PendingMatrix &left : warp.matrix)
    check_named(left, named, false, site);
}

// A wait names the results that it makes usable, and no others.
void Executor::check_named(const PendingMatrix &pending, std::span<const Registers> named,
                           bool complete, Site site) {
  const bool is_named = std::any_of(named.begin(), named.end(), [&](const Registers &registers) {
    return registers.holds(pending.operation->result());
  });
  if (is_named == complete) return;
  const std::string issue = "the matrix operation issued at " + to_string(pending.site);
  report(running_, HazardKind::kAsyncInFlightRead,
         complete ? "no wait names the result of " + issue + ", which is complete here"
                  : "a wait names the result of " + issue + ", and leaves it in flight",
         site, pending.site);
}

// ---- the end of a block ----

void Executor::check_left_behind() {
  try {
    const uint32_t warps = (threads_ + kLanes - 1) / kLanes;
    for (uint32_t w = 0; w < warps; ++w) {
      const Warp &warp = warps_[w];
      if (!warp.matrix.empty())
        report(w * kLanes, HazardKind::kAsyncInFlightRead,
               "a warp exits, last at " + to_string(fibers_[w * kLanes].site) +
                   ", before the wait of a matrix operation",
               warp.matrix.front().site, fibers_[w * kLanes].site);
      const std::vector<Site> &steps = matrix_steps_[w / kGroupWarps];
      if (warp.matrix_steps != steps.size())
        report(w * kLanes, HazardKind::kDivergentBarrier,
               "a warp of a warpgroup leaves out operation " + std::to_string(warp.matrix_steps),
               steps[warp.matrix_steps]);
    }
    check_mbarriers_left();
  } catch (const HazardFound &) {
    // The hazard is recorded, and no thread is left to unwind.
  }
}

// ---- entry points ----

void fence_async_proxy(Site site) { Executor::current().fence_async_proxy(site); }
void fence_mbarrier_init(Site site) { Executor::current().fence_mbarrier_init(site); }
void matrix_issue(std::unique_ptr<MatrixOperation> operation, Site site) {
  Executor::current().matrix_issue(std::move(operation), site);
}
void matrix_fence(Site site) { Executor::current().matrix_fence(site); }
void matrix_commit(Site site) { Executor::current().matrix_commit(site); }
void matrix_wait(uint32_t pending_groups, std::span<const Registers> named, Site site) {
  Executor::current().matrix_wait(pending_groups, named, site);
}

} // namespace assay::simt
