// SPDX-License-Identifier: Apache-2.0
// What warpgroups need: mbarriers, fences between threads and matrix operations, and what happens
// to a matrix operation from its issue to the wait that covers it.
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
  for (Mbarrier &barrier : mbarriers_)
    if (barrier.address == address) return barrier;
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
  mbarriers_.push_back({address, count, 0, 0, site, {}, {}});
}

void Executor::mbarrier_arrive(void *address, Site site) {
  Mbarrier &barrier = mbarrier_at(address, site);
  barrier.latest = site;
  order_.arrived(running_, static_cast<uint32_t>(&barrier - mbarriers_.data()), barrier.phase);
  if (++barrier.arrived < barrier.count) return;
  barrier.arrived = 0;
  ++barrier.phase;
  ++counters_->mbarrier_phases;
  uint32_t waiter = kMaxBlockThreads;
  for (uint32_t word = 0; word < barrier.waiting.size(); ++word) {
    uint64_t waiting = std::exchange(barrier.waiting[word], 0);
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
  const auto phase = static_cast<int32_t>(barrier.phase);
  if ((barrier.phase & 1) != parity) {
    order_.passed(running_, slot, phase - 1);
    return maybe_preempt(kPreemptAtBarrier);
  }
  barrier.waiting[running_ / 64] |= uint64_t{1} << (running_ % 64);
  Fiber &fiber = fibers_[running_];
  fiber.wait = Wait::kMbarrier;
  fiber.slot = static_cast<uint8_t>(slot);
  suspend();
  order_.passed(running_, slot, phase);
}

// ---- fences ----

void Executor::fence_async_proxy(Site site) {
  fibers_[running_].site = site;
  ++fibers_[running_].proxy_fences;
}

void Executor::check_matrix_read(uint32_t thread, size_t offset, size_t bytes, Site site) {
  for (size_t at = offset; at < offset + bytes; at += SharedMemory::kWriterBytes) {
    const SharedMemory::Writer *writer = shared_.writer(at);
    if (writer == nullptr || fibers_[writer->thread].proxy_fences > writer->fences) continue;
    report(thread, HazardKind::kMissingFence,
           "a matrix operation reads shared offset " + std::to_string(at) + ", which thread " +
               std::to_string(writer->thread) + " wrote at " + to_string(writer->site) +
               " without fence_async_proxy since",
           site, writer->site);
  }
}

void Executor::report_matrix_reader(uint32_t thread, size_t offset, size_t bytes, Site site) {
  for (const Warp &warp : warps_)
    for (const PendingMatrix &pending : warp.matrix)
      for (const SharedRange &range : pending.reads) {
        const size_t begin = shared_.offset_of(range.address);
        if (begin >= offset + bytes || offset >= begin + range.bytes) continue;
        report(thread, HazardKind::kAsyncInFlightWrite,
               std::to_string(bytes) + " bytes at shared offset " + std::to_string(offset) +
                   " are written before the wait of the matrix operation issued at " +
                   to_string(pending.site) + ", which reads them",
               site, pending.site);
      }
  report(thread, HazardKind::kAsyncInFlightWrite,
         "bytes beside those that a matrix operation in flight reads", site);
}

// ---- matrix operations, called once per warp ----

void Executor::matrix_issue(std::unique_ptr<MatrixOperation> operation,
                            std::vector<SharedRange> reads, Site site) {
  const uint32_t warp_index = running_ / kLanes;
  Warp &warp = warps_[warp_index];
  if (!warp.fenced)
    report(running_, HazardKind::kMissingFence,
           "a matrix operation without wgmma_fence since the last commit", site);
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
  for (const SharedRange &range : reads)
    shared_.add_readers(shared_.offset_of(range.address), range.bytes, 1);
  const bool first = warp.matrix.empty() || warp.matrix.back().operation == nullptr;
  const bool now =
      first && (schedule_.copies == CopyCompletion::kAtIssue ||
                (schedule_.copies == CopyCompletion::kSeeded && random_.below(2) == 0));
  if (now) {
    operation->complete();
    operation = nullptr;
  } else {
    operation->postpone();
  }
  warp.matrix.push_back({std::move(operation), std::move(reads), warp.matrix_groups, site});
}

void Executor::matrix_fence(Site) { warps_[running_ / kLanes].fenced = true; }

void Executor::matrix_commit(Site) {
  Warp &warp = warps_[running_ / kLanes];
  ++warp.matrix_groups;
  warp.fenced = false;
}

void Executor::matrix_wait(uint32_t pending_groups, Site) {
  Warp &warp = warps_[running_ / kLanes];
  if (warp.matrix_groups <= pending_groups) return;
  const uint32_t complete_below = warp.matrix_groups - pending_groups;
  auto pending = warp.matrix.begin();
  for (; pending != warp.matrix.end() && pending->group < complete_below; ++pending) {
    if (pending->operation != nullptr) pending->operation->complete();
    for (const SharedRange &range : pending->reads)
      shared_.add_readers(shared_.offset_of(range.address), range.bytes, -1);
  }
  warp.matrix.erase(warp.matrix.begin(), pending);
}

// ---- the end of a block ----

void Executor::check_left_behind() {
  try {
    const uint32_t warps = (config_.block + kLanes - 1) / kLanes;
    for (uint32_t w = 0; w < warps; ++w) {
      const Warp &warp = warps_[w];
      if (!warp.matrix.empty())
        report(w * kLanes, HazardKind::kAsyncInFlightRead,
               "a warp exits before the wait of a matrix operation", warp.matrix.front().site);
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
void matrix_issue(std::unique_ptr<MatrixOperation> operation, std::vector<SharedRange> reads,
                  Site site) {
  Executor::current().matrix_issue(std::move(operation), std::move(reads), site);
}
void matrix_fence(Site site) { Executor::current().matrix_fence(site); }
void matrix_commit(Site site) { Executor::current().matrix_commit(site); }
void matrix_wait(uint32_t pending_groups, Site site) {
  Executor::current().matrix_wait(pending_groups, site);
}

} // namespace assay::simt
