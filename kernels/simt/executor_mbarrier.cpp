// SPDX-License-Identifier: Apache-2.0
// mbarriers: arrivals, bytes of bulk copies, and phases.
#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/simt/turns.h"

namespace assay::simt {
namespace {

constexpr uint32_t kPreemptAtBarrier = 4; // seeded schedules: mean waits per preemption

} // namespace

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
  part_->shared.mark(SharedMemory::kUndefined, part_->shared.offset_of(address), 8);
  Mbarrier barrier;
  barrier.address = address;
  barrier.count = count;
  barrier.init = site;
  barrier.maker = running_;
  barrier.made = order_.clocks().epoch(running_);
  mbarriers_.push_back(barrier);
}

// Once all have arrived nobody expects more in this phase.
void Executor::check_bytes(const Mbarrier &barrier, uint32_t thread, Site site) {
  if (!barrier.all_arrived() || barrier.issued <= barrier.expected) return;
  const Site other = site == barrier.copy ? barrier.expect : barrier.copy;
  report(thread, HazardKind::kBarrierMisuse,
         "phase " + std::to_string(barrier.phase) + " of an mbarrier expects " +
             std::to_string(barrier.expected) + " bytes, and " + std::to_string(barrier.issued) +
             " come, the latest of the bulk copy issued at " + to_string(barrier.copy) +
             (barrier.expected == 0 ? "" : "; expected at " + to_string(barrier.expect)) +
             ": it may end before the last are there",
         site, other.file == nullptr ? barrier.latest : other);
}

void Executor::mbarrier_expect(void *address, uint32_t bytes, Site site) {
  if (explorer_) Turns::announce(*this, {Operation::Kind::kChange, address}, site);
  Mbarrier &barrier = mbarrier_at(address, site);
  barrier.expect = site;
  barrier.expected += bytes;
  if (barrier.expected > kMostBytes)
    report(running_, HazardKind::kBarrierMisuse,
           "a phase of an mbarrier expects " + std::to_string(barrier.expected) +
               " bytes; at most 2^20 - 1 are possible",
           site, barrier.init);
}

void Executor::mbarrier_arrive(void *address, Site site) {
  maybe_complete_bulk_copy();
  if (explorer_) Turns::announce(*this, {Operation::Kind::kArrive, address}, site);
  Mbarrier &barrier = mbarrier_at(address, site);
  if (barrier.all_arrived())
    report(running_, HazardKind::kBarrierMisuse,
           "an arrival at an mbarrier whose phase " + std::to_string(barrier.phase) +
               " has all its " + std::to_string(barrier.count) +
               " arrivals and lacks bytes; the latest arrival at " + to_string(barrier.latest),
           site, barrier.latest);
  barrier.latest = site;
  order_.arrived(running_, slot_of(barrier));
  if (++barrier.arrived < barrier.count) return;
  check_bytes(barrier, running_, site);
  if (barrier.come == barrier.expected) go_on_with(complete_phase(barrier));
}

// Returns the first of those who waited, or kMaxBlockThreads.
uint32_t Executor::complete_phase(Mbarrier &barrier) {
  const uint32_t slot = slot_of(barrier);
  if (barrier.issued != 0) end_bulk_copies(barrier);
  barrier.unseen |= barrier.issued != 0;
  barrier.arrived = 0;
  barrier.expected = barrier.issued = barrier.come = 0;
  ++barrier.phase;
  ++counters_->mbarrier_phases;
  order_.completed(slot);
  uint32_t waiter = kMaxBlockThreads;
  barrier.unseen = barrier.unseen && std::all_of(barrier.waiting.begin(), barrier.waiting.end(),
                                                 [](uint64_t waiting) { return waiting == 0; });
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
  return waiter;
}

// A thread that waited goes on first. Where the phase ended too early, that thread then finds
// undone what should have been done before it.
void Executor::go_on_with(uint32_t waiter) {
  if (waiter == kMaxBlockThreads) return maybe_preempt(kPreemptAtBarrier);
  ready_.insert(running_);
  switch_to(waiter);
}

// A wait of the scope of a block does not see what the threads of others did before they arrived.
void Executor::check_scope(const Mbarrier &barrier) {
  if (barrier.far.file == nullptr || barrier.near_wait.file == nullptr) return;
  report(running_, HazardKind::kBarrierMisuse,
         "threads of another block arrive at an mbarrier at " + to_string(barrier.far) +
             ", and mbarrier_wait does not see what they did: mbarrier_wait_cluster does",
         barrier.near_wait, barrier.far);
}

void Executor::mbarrier_arrive_cluster(void *address, uint32_t rank, Site site) {
  use_part(rank, site);
  void *there = place_in(rank, address);
  Mbarrier &barrier = mbarrier_at(there, site);
  if (rank != part_->rank) barrier.far = site;
  check_scope(barrier);
  mbarrier_arrive(there, site);
}

void Executor::mbarrier_wait(void *address, uint32_t parity, Site site, Scope scope) {
  maybe_complete_bulk_copy();
  Mbarrier &barrier = mbarrier_at(address, site);
  if (scope == Scope::kBlock) barrier.near_wait = site;
  check_scope(barrier);
  if (parity > 1)
    report(running_, HazardKind::kUnmodelled, "mbarrier parity " + std::to_string(parity), site);
  const uint32_t slot = slot_of(barrier);
  Fiber &fiber = fibers_[running_];
  fiber.slot = static_cast<uint8_t>(slot);
  if (explorer_) {
    fiber.wanted = parity;
    Turns::announce(*this, {Operation::Kind::kWait, address, 0, parity}, site, Wait::kMbarrier);
  }
  Mbarrier &now = mbarriers_[slot]; // others may have added some
  if ((now.phase & 1) != parity) {
    order_.passed(running_, slot);
    now.unseen = false;
    return maybe_preempt(kPreemptAtBarrier);
  }
  now.waiting[running_ / 64] |= uint64_t{1} << (running_ % 64);
  fiber.wait = Wait::kMbarrier;
  suspend();
}

// The barrier that a thread waits at, where nothing but bytes is missing.
const Executor::Mbarrier *Executor::short_of_bytes(uint32_t thread) const {
  const Fiber &fiber = fibers_[thread];
  if (fiber.exited || fiber.wait != Wait::kMbarrier) return nullptr;
  const Mbarrier &barrier = mbarriers_[fiber.slot];
  return barrier.all_arrived() && barrier.come != barrier.expected ? &barrier : nullptr;
}

void Executor::check_mbarriers_left() {
  for (const BulkCopy &copy : bulk_copies_)
    report(copy.thread, HazardKind::kAsyncInFlightRead,
           "the block ends before a phase that counts the bytes of a bulk copy, for the mbarrier "
           "initialised at " +
               to_string(mbarriers_[copy.barrier].init),
           copy.site, mbarriers_[copy.barrier].init);
  for (const Mbarrier &barrier : mbarriers_)
    if (barrier.unseen)
      report(barrier.maker, HazardKind::kAsyncInFlightRead,
             "nobody waits for the last phase of the mbarrier initialised at " +
                 to_string(barrier.init) + ", which counts a bulk copy",
             barrier.copy, barrier.init);
  for (const Mbarrier &barrier : mbarriers_)
    if (barrier.arrived != 0 || barrier.expected != 0)
      report(0, HazardKind::kBarrierMisuse,
             "an mbarrier is left with " + std::to_string(barrier.arrived) + " of " +
                 std::to_string(barrier.count) + " arrivals and " + std::to_string(barrier.come) +
                 " of " + std::to_string(barrier.expected) + " bytes in phase " +
                 std::to_string(barrier.phase) + "; initialised at " + to_string(barrier.init),
             barrier.arrived != 0 ? barrier.latest : barrier.expect, barrier.init);
}

// ---- entry points ----

void mbarrier_init(void *barrier, uint32_t count, Site site) {
  Executor::current().mbarrier_init(barrier, count, site);
}
void mbarrier_arrive(void *barrier, Site site) {
  Executor::current().mbarrier_arrive(barrier, site);
}
void mbarrier_wait(void *barrier, uint32_t parity, Site site, Scope scope) {
  Executor::current().mbarrier_wait(barrier, parity, site, scope);
}
void mbarrier_arrive_cluster(void *barrier, uint32_t rank, Site site) {
  Executor::current().mbarrier_arrive_cluster(barrier, rank, site);
}
void mbarrier_expect(void *barrier, uint32_t bytes, Site site) {
  Executor::current().mbarrier_expect(barrier, bytes, site);
}

} // namespace assay::simt
