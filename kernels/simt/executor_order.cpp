// SPDX-License-Identifier: Apache-2.0
// Order of memory between the blocks of a grid, and between devices: atomic operations, fences, and
// plain accesses.
#include <algorithm>

#include "kernels/simt/executor.h"

namespace assay::simt {
namespace {

constexpr uint32_t kYieldAtFlag = 2; // seeded schedules: mean flags per turn of the others

using How = Writer::How;

// `wide`: the scope must hold more than one device.
std::string verb(How how, bool writes, bool wide) {
  const std::string done = writes ? "changed" : "read";
  if (how == How::kPlain) return writes ? "written" : "read";
  if (how == How::kAtomicInBlock) return done + " atomically at the scope of a block";
  if (how == How::kAtomic && wide) return done + " atomically at the scope of a device";
  return done + " atomically";
}

How how_of(Scope scope) {
  if (scope == Scope::kSystem) return How::kAtomicInSystem;
  return scope == Scope::kGpu ? How::kAtomic : How::kAtomicInBlock;
}

} // namespace

// Whether an earlier access of another block may happen at the same time as what runs now.
bool Executor::beside(const Writer &access) const {
  if (access.launch == launch_.own) return access.block != block_;
  return side_ && access.launch >= launch_.oldest &&
         !side_->ordered(side_->devices, side_->device, access.launch);
}

void Executor::check_other_block(const Writer &other, bool other_writes, const Writer &mine,
                                 bool writes, const void *address, size_t bytes) {
  // Two atomic operations on the same bytes need no order between them if the scope of each holds
  // both blocks.
  const bool wide = other.launch != mine.launch;
  if (std::min(other.how, mine.how) >= (wide ? How::kAtomicInSystem : How::kAtomic) &&
      other.bytes == mine.bytes && !other.takes)
    return;
  if (order_.sees(mine.thread, other)) return;
  const std::string whose =
      "block " + std::to_string(other.block) + (wide ? " of another device" : "");
  report(mine.thread, HazardKind::kUnordered,
         stream_->memory.place(address, bytes) + " are " + verb(mine.how, writes, wide) +
             ", and nothing orders that behind " + whose + ", thread " +
             std::to_string(other.thread) + ", by which they were " +
             verb(other.how, other_writes, wide) + " at " + to_string(other.site),
         mine.site, other.site);
}

void Executor::check_order(uint32_t thread, How how, bool writes, const void *address, size_t bytes,
                           Site site, bool takes) {
  LastWriters *writers = stream_->memory.last_writers();
  Readers *readers = stream_->memory.readers();
  if (writers == nullptr && readers == nullptr) return;
  const auto mine = [&] {
    return Writer{site,
                  launch_.own,
                  block_,
                  order_.stamp(),
                  static_cast<uint16_t>(thread),
                  how,
                  static_cast<uint8_t>(how == How::kPlain ? 0 : bytes),
                  takes};
  };
  const auto look = [&](const Writer &writer) {
    if (beside(writer)) [[unlikely]]
      check_other_block(writer, true, mine(), writes, address, bytes);
  };
  if (!writes) {
    if (writers != nullptr) writers->read(address, bytes, look);
    if (readers == nullptr) return;
    order_.touched();
    return readers->add(address, bytes, mine());
  }
  order_.touched();
  if (readers != nullptr)
    readers->take(address, bytes, [&](const Writer &reader) {
      if (beside(reader)) check_other_block(reader, false, mine(), writes, address, bytes);
    });
  writers->write(address, bytes, [&](Writer &writer) {
    look(writer);
    writer = mine();
  });
}

void Executor::atomic_access(const void *address, size_t bytes, AtomicKind kind, AtomicOrder order,
                             Scope scope, Site site) {
  const bool loads = kind == AtomicKind::kLoad || kind == AtomicKind::kTake;
  const AccessKind access = loads                        ? AccessKind::kAtomicLoad
                            : kind == AtomicKind::kStore ? AccessKind::kAtomicStore
                                                         : AccessKind::kAtomic;
  ::assay::simt::access(Space::kGlobal, access, address, bytes, bytes, site);
  if (!has_peers_) return;
  check_order(running_, how_of(scope), !loads, address, bytes, site, kind == AtomicKind::kTake);
  order_.atomic(running_, address, kind, order, scope);
}

void Executor::fence(Scope scope, Site site) {
  fibers_[running_].site = site;
  if (has_peers_) order_.fence(running_, scope);
}

// ---- words that others write ----

// Returns false where the word has not come when nobody can run.
bool Executor::wait_for_word(const uint32_t *word, uint32_t value, bool exactly, Site site) {
  Fiber &self = fibers_[running_];
  self.site = site;
  // What others may change must be there to be read.
  ::assay::simt::access(Space::kGlobal, AccessKind::kAtomicLoad, word, 4, 4, site);
  if (side_ && schedule_.order == Order::kSeeded && random_.below(kYieldAtFlag) == 0) {
    ready_.insert(running_);
    yield();
    if (const uint32_t next = ready_.take(schedule_.order, random_); next != running_)
      switch_to(next);
  }
  self.word = word;
  self.wanted = value;
  self.exactly = exactly;
  self.expired = false;
  if (!self.reached()) {
    self.wait = Wait::kWord;
    word_waiters_.push_back(running_);
    suspend();
  }
  return !self.expired;
}

bool Executor::await_word(const uint32_t *address, uint32_t value, AtomicOrder order, Scope scope,
                          Site site) {
  if (!wait_for_word(address, value, false, site)) return false;
  atomic_access(address, 4, AtomicKind::kLoad, order, scope, site);
  return true;
}

bool Executor::await_message(const void *message, size_t bytes, const uint32_t *word,
                             uint32_t value, Scope scope, Site site) {
  if (!wait_for_word(word, value, true, site)) return false;
  atomic_access(message, bytes, AtomicKind::kTake, AtomicOrder::kRelaxed, scope, site);
  return true;
}

// Whether a waiting thread is now ready.
bool Executor::wake_reached() {
  const auto reached = [&](uint32_t thread) {
    const Fiber &fiber = fibers_[thread];
    if (!fiber.expired && !fiber.reached()) return false;
    ready_.insert(thread);
    return true;
  };
  return std::erase_if(word_waiters_, reached) != 0;
}

bool Executor::can_run() const {
  return !ready_.empty() ||
         std::any_of(word_waiters_.begin(), word_waiters_.end(), [&](uint32_t thread) {
           const Fiber &fiber = fibers_[thread];
           return fiber.expired || fiber.reached();
         });
}

void Executor::expire_waits() {
  for (const uint32_t thread : word_waiters_)
    fibers_[thread].expired = true;
}

void Executor::find_ready() {
  while (ready_.empty() && !wake_reached()) {
    if (word_waiters_.empty()) report_stall();
    if (side_)
      yield();
    else
      expire_waits(); // the other blocks of the grid come later
  }
}

// ---- entry points ----

void atomic_access(const void *address, size_t bytes, AtomicKind kind, AtomicOrder order,
                   Scope scope, Site site) {
  Executor::current().atomic_access(address, bytes, kind, order, scope, site);
}
void fence(Scope scope, Site site) { Executor::current().fence(scope, site); }
bool await_word(const uint32_t *address, uint32_t value, AtomicOrder order, Scope scope,
                Site site) {
  return Executor::current().await_word(address, value, order, scope, site);
}
bool await_message(const void *message, size_t bytes, const uint32_t *word, uint32_t value,
                   Scope scope, Site site) {
  return Executor::current().await_message(message, bytes, word, value, scope, site);
}

} // namespace assay::simt
