// SPDX-License-Identifier: Apache-2.0
// The executor under the explorer. A thread announces what it is about to do, and is then not
// ready, so that the ready ones run to their next operation. Once nobody is ready the explorer
// chooses one of those that can go on. A wait can where its phase or its word has come: a device
// asks again and again, and what has passed when it asks next is lost.
#include <bit>
#include <numeric>

#include "kernels/simt/turns.h"

namespace assay::simt {

using Kind = Operation::Kind;

void Turns::run_blocks(Executor &e, uint32_t clusters) {
  e.explorer_->begin_launch();
  std::vector<uint32_t> left(clusters);
  std::iota(left.begin(), left.end(), 0u);
  while (!left.empty() && !e.hazard_) {
    const uint32_t next = e.explorer_->choose_block(left);
    std::erase(left, next);
    e.explorer_->begin_block(e.config_.block * e.config_.cluster);
    e.run_block(next * e.config_.cluster);
  }
  e.explorer_->end_launch(e.hazard_.has_value());
}

void Turns::announce(Executor &e, const Operation &operation, Site site, Executor::Wait wait) {
  const uint32_t self = e.running_;
  e.fibers_[self].site = site;
  e.fibers_[self].wait = wait;
  e.explorer_->announce(self, operation, self);
  e.suspend();
  e.explorer_->perform(self, effect_of(e, operation));
}

void Turns::announce_copy(Executor &e, const void *barrier) {
  Executor::BulkCopy &copy = e.bulk_copies_.back();
  copy.number = e.explorer_->participants();
  e.explorer_->announce(copy.number, {Kind::kArrive, barrier}, e.running_);
}

bool Turns::possible(const Executor &e, uint32_t thread) {
  const Executor::Fiber &fiber = e.fibers_[thread];
  if (fiber.wait == Executor::Wait::kMbarrier)
    return (e.mbarriers_[fiber.slot].phase & 1) != fiber.wanted;
  return fiber.wait != Executor::Wait::kWord || fiber.expired || fiber.reached();
}

// `bytes`: of a copy, which come now; 0: a thread arrives.
Explorer::Effect Turns::effect_of(const Executor &e, const Operation &operation, uint32_t bytes) {
  using enum Explorer::Effect;
  if (operation.kind == Kind::kMeet) {
    const auto &barrier = *static_cast<const Executor::Barrier *>(operation.object);
    return barrier.arrived + 1 == barrier.expected ? kEnds : kNone;
  }
  if (operation.kind != Kind::kArrive) return kNone;
  for (const Executor::Mbarrier &barrier : e.mbarriers_) {
    if (barrier.address != operation.object) continue;
    if (barrier.arrived + (bytes == 0) < barrier.count) return kNone;
    return barrier.come + bytes == barrier.expected ? kEnds : kAllArrived;
  }
  return kNone;
}

bool Turns::complete_copy(Executor &e, uint32_t who) {
  for (Executor::BulkCopy &copy : e.bulk_copies_) {
    if (copy.number != who || copy.complete) continue;
    e.explorer_->perform(who, effect_of(e, e.explorer_->announced().at(who), copy.bytes));
    e.complete_bulk_copy(copy);
    return true;
  }
  return false;
}

bool Turns::choose(Executor &e) {
  for (;;) {
    std::vector<uint32_t> can;
    for (const auto &[who, operation] : e.explorer_->announced())
      if (who >= e.threads_ || possible(e, who)) can.push_back(who);
    if (can.empty()) return false;
    const uint32_t next = e.explorer_->choose(can);
    if (next == Explorer::kNobody)
      e.report(e.running_, HazardKind::kUnmodelled,
               "a run of so many choices is not explored; " + e.who_waits_where(),
               e.fibers_[e.running_].site);
    if (complete_copy(e, next)) continue;
    e.ready_.insert(next);
    return true;
  }
}

// ---- meetings ----

void Turns::meet(Executor &e, const std::array<uint64_t, kMaxBlockThreads / 64> &threads) {
  std::vector<uint32_t> all;
  for (uint32_t word = 0; word < threads.size(); ++word)
    for (uint64_t left = threads[word]; left != 0; left &= left - 1)
      all.push_back(word * 64 + static_cast<uint32_t>(std::countr_zero(left)));
  if (!e.fibers_[e.running_].exited) all.push_back(e.running_);
  e.explorer_->meet(all);
}

void Turns::meet_lanes(Executor &e, uint32_t warp, uint32_t lanes) {
  std::array<uint64_t, kMaxBlockThreads / 64> threads{};
  threads[warp / 2] = static_cast<uint64_t>(lanes) << (warp % 2 * kLanes);
  meet(e, threads);
}

} // namespace assay::simt
