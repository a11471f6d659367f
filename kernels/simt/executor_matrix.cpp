// SPDX-License-Identifier: Apache-2.0
// What warpgroups need: mbarriers, fences between threads and matrix operations, and what happens
// to a matrix operation from its issue to the wait that covers it.
#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/simt/executor.h"

namespace assay::simt {
namespace {

constexpr uint32_t kPreemptAtBarrier = 4; // seeded schedules: mean waits per preemption

} // namespace

// ---- mbarriers ----

Executor::Mbarrier &Executor::mbarrier_at(const void *address, Site site) {
  fibers_[running_].site = site;
  for (Mbarrier &barrier : mbarriers_) {
    if (barrier.address != address) continue;
    if (!order_.clocks().knows(running_, barrier.maker, barrier.made))
      report(running_, HazardKind::kUnordered,
             "an mbarrier is used, and nothing orders that behind thread " +
                 std::to_string(barrier.maker) + ", which initialised it at " +
                 to_string(barrier.init),
             site, barrier.init);
    return barrier;
  }
  report(running_, HazardKind::kBarrierMisuse, "an mbarrier that nobody has initialised", site);
}

void Executor::mbarrier_init(void *address, uint32_t count, Site site) {
  ::assay::simt::access(Space::kShared, AccessKind::kWrite, address, 8, 8, site);
  for (const Mbarrier &barrier : mbarriers_)
    if (barrier.address == address)
      report(running_, HazardKind::kBarrierMisuse,
             "an mbarrier initialised twice, first at " + to_string(barrier.init), site,
             barrier.init);
  if (count == 0 || count >= 1u << 20 || mbarriers_.size() == kMbarriers)
    report(running_, HazardKind::kUnmodelled,
           "mbarrier for " + std::to_string(count) + " arrivals, or more than " +
               std::to_string(kMbarriers) + " mbarriers",
           site);
  // An ordinary load must not read a barrier: its bytes count as never written.
  shared_.mark(SharedMemory::kUndefined, shared_.offset_of(address), 8);
  mbarriers_.push_back(
      {address, count, 0, 0, site, {}, running_, order_.clocks().epoch(running_), {}});
}

void Executor::mbarrier_arrive(void *address, Site site) {
  Mbarrier &barrier = mbarrier_at(address, site);
  barrier.latest = site;
  const auto slot = static_cast<uint32_t>(&barrier - mbarriers_.data());
  order_.arrived(running_, slot);
  if (++barrier.arrived < barrier.count) return;
  barrier.arrived = 0;
  ++barrier.phase;
  ++counters_->mbarrier_phases;
  order_.completed(slot);
  uint32_t waiter = kMaxBlockThreads;
  for (uint32_t word = 0; word < barrier.waiting.size(); ++word) {
    uint64_t waiting = std::exchange(barrier.waiting[word], 0);
    for (uint64_t left = waiting; left != 0; left &= left - 1)
      order_.passed(word * 64 + static_cast<uint32_t>(std::countr_zero(left)), slot);
    if (waiting != 0 && waiter == kMaxBlockThreads) {
      waiter = word * 64 + static_cast<uint32_t>(std::countr_zero(waiting));
      waiting &= waiting - 1;
    }
    ready_.insert_word(word, waiting);
  }
  if (waiter == kMaxBlockThreads) return maybe_preempt(kPreemptAtBarrier);
  // A thread that waited goes on first. Where the arrival came too early, that thread then finds
  // undone what should have been done before it.
  ready_.insert(running_);
  switch_to(waiter);
}

void Executor::mbarrier_wait(void *address, uint32_t parity, Site site) {
  Mbarrier &barrier = mbarrier_at(address, site);
  if (parity > 1)
    report(running_, HazardKind::kUnmodelled, "mbarrier parity " + std::to_string(parity), site);
  const auto slot = static_cast<uint32_t>(&barrier - mbarriers_.data());
  if ((barrier.phase & 1) != parity) {
    order_.passed(running_, slot);
    return maybe_preempt(kPreemptAtBarrier);
  }
  barrier.waiting[running_ / 64] |= uint64_t{1} << (running_ % 64);
  Fiber &fiber = fibers_[running_];
  fiber.wait = Wait::kMbarrier;
  fiber.slot = static_cast<uint8_t>(slot);
  suspend();
}

// ---- fences ----

void Executor::fence_async_proxy(Site site) {
  fibers_[running_].site = site;
  fibers_[running_].proxy_fence = order_.moment(running_);
}

void Executor::check_proxy(uint32_t thread, const Writer &writer, const void *address, Site site) {
  if (writer.stamp == 0 || fibers_[writer.thread].proxy_fence >= writer.stamp) return;
  report(thread, HazardKind::kMissingFence,
         "a matrix operation reads shared offset " + std::to_string(shared_.offset_of(address)) +
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
    const uint32_t warps = (config_.block + kLanes - 1) / kLanes;
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
    for (const Mbarrier &barrier : mbarriers_)
      if (barrier.arrived != 0)
        report(0, HazardKind::kBarrierMisuse,
               "an mbarrier is left with " + std::to_string(barrier.arrived) + " of " +
                   std::to_string(barrier.count) + " arrivals in phase " +
                   std::to_string(barrier.phase) + "; initialised at " + to_string(barrier.init),
               barrier.latest, barrier.init);
  } catch (const HazardFound &) {
    // The hazard is recorded, and no thread is left to unwind.
  }
}

// ---- entry points ----

void mbarrier_init(void *barrier, uint32_t count, Site site) {
  Executor::current().mbarrier_init(barrier, count, site);
}
void mbarrier_arrive(void *barrier, Site site) {
  Executor::current().mbarrier_arrive(barrier, site);
}
void mbarrier_wait(void *barrier, uint32_t parity, Site site) {
  Executor::current().mbarrier_wait(barrier, parity, site);
}
void fence_async_proxy(Site site) { Executor::current().fence_async_proxy(site); }
void matrix_issue(std::unique_ptr<MatrixOperation> operation, Site site) {
  Executor::current().matrix_issue(std::move(operation), site);
}
void matrix_fence(Site site) { Executor::current().matrix_fence(site); }
void matrix_commit(Site site) { Executor::current().matrix_commit(site); }
void matrix_wait(uint32_t pending_groups, std::span<const Registers> named, Site site) {
  Executor::current().matrix_wait(pending_groups, named, site);
}

} // namespace assay::simt
