// SPDX-License-Identifier: Apache-2.0
// The executor under the explorer. A thread announces what it is about to do, and is then not
// ready, so that the ready ones run to their next operation. Once nobody is ready the explorer
// chooses one of those that can go on. A wait can where its phase or its word has come: a device
// asks again and again, and what has passed when it asks next is lost.
#include <bit>
#include <numeric>

#include "kernels/simt/executor.h"
#include "kernels/simt/explorer.h"

namespace assay::simt {

using Kind = Operation::Kind;

void Executor::run_explored_blocks(uint32_t clusters) {
  explorer_->begin_launch();
  std::vector<uint32_t> left(clusters);
  std::iota(left.begin(), left.end(), 0u);
  while (!left.empty() && !hazard_) {
    const uint32_t next = explorer_->choose_block(left);
    std::erase(left, next);
    copies_ = 0;
    explorer_->begin_block(config_.block * config_.cluster);
    run_block(next * config_.cluster);
  }
  explorer_->end_launch(hazard_.has_value());
}

void Executor::announce(const Operation &operation, Site site, Wait wait) {
  const uint32_t self = running_;
  fibers_[self].site = site;
  fibers_[self].wait = wait;
  explorer_->announce(self, operation, self);
  suspend();
  explorer_->perform(self, completes(operation));
}

// A bulk copy that was issued now is one more who acts: its bytes come at some time.
void Executor::explore_copy(const void *barrier) {
  bulk_copies_.back().number = copies_++;
  explorer_->announce(threads_ + bulk_copies_.back().number, {Kind::kArrive, barrier}, running_);
}

bool Executor::possible(uint32_t thread) const {
  const Fiber &fiber = fibers_[thread];
  if (fiber.wait == Wait::kMbarrier) return (mbarriers_[fiber.slot].phase & 1) != fiber.wanted;
  return fiber.wait != Wait::kWord || fiber.expired || fiber.reached();
}

// Whether an operation that happens now ends the phase of its barrier. `bytes`: of a copy, which
// come now; 0: a thread arrives.
bool Executor::completes(const Operation &operation, uint32_t bytes) const {
  if (operation.kind == Kind::kMeet) {
    const Barrier &barrier = *static_cast<const Barrier *>(operation.object);
    return barrier.arrived + 1 == barrier.expected;
  }
  if (operation.kind != Kind::kArrive) return false;
  for (const Mbarrier &barrier : mbarriers_)
    if (barrier.address == operation.object)
      return barrier.arrived + (bytes == 0) == barrier.count &&
             barrier.come + bytes == barrier.expected;
  return false;
}

// Nobody is ready. Makes one ready whose operation is next; until then bytes of copies may come.
// Returns false where nobody can go on.
bool Executor::explore_step() {
  for (;;) {
    std::vector<uint32_t> can;
    for (const auto &[who, operation] : explorer_->announced())
      if (who >= threads_ || possible(who)) can.push_back(who);
    if (can.empty()) return false;
    const uint32_t next = explorer_->choose(can);
    if (next == Explorer::kNobody)
      report(running_, HazardKind::kUnmodelled,
             "a run of so many choices is not explored; " + who_waits_where(),
             fibers_[running_].site);
    if (next < threads_) {
      ready_.insert(next);
      return true;
    }
    for (BulkCopy &copy : bulk_copies_)
      if (threads_ + copy.number == next && !copy.complete) {
        explorer_->perform(next, completes(explorer_->announced().at(next), copy.bytes));
        complete_bulk_copy(copy);
        break;
      }
  }
}

// ---- meetings ----

void Executor::meet(const std::array<uint64_t, kMaxBlockThreads / 64> &threads) {
  std::vector<uint32_t> all;
  for (uint32_t word = 0; word < threads.size(); ++word)
    for (uint64_t left = threads[word]; left != 0; left &= left - 1)
      all.push_back(word * 64 + static_cast<uint32_t>(std::countr_zero(left)));
  if (!fibers_[running_].exited) all.push_back(running_);
  explorer_->meet(all);
}

void Executor::meet_lanes(uint32_t warp, uint32_t lanes) {
  std::array<uint64_t, kMaxBlockThreads / 64> threads{};
  threads[warp / 2] = static_cast<uint64_t>(lanes) << (warp % 2 * kLanes);
  meet(threads);
}

} // namespace assay::simt
