// SPDX-License-Identifier: Apache-2.0
// Order of memory inside a block, between the blocks of a grid, and between devices: atomic
// operations, fences, and plain accesses.
#include <algorithm>
#include <bit>

#include "kernels/simt/turns.h"

namespace assay::simt {
namespace {

constexpr uint32_t kYieldAtFlag = 2; // seeded schedules: mean flags per turn of the others

How how_of(Scope scope) {
  if (scope == Scope::kSystem) return How::kAtomicInSystem;
  return scope == Scope::kGpu ? How::kAtomic : How::kAtomicInBlock;
}

} // namespace

// ---- inside a block ----

// Whether what a thread of this block did is ordered before what `thread` does now.
bool Executor::knows(uint32_t thread, const Writer &access) {
  if (order_.clocks().knows(thread, access.thread, access.stamp)) return true;
  Writer here = access;
  here.launch = launch_.own;
  here.block = block_;
  return order_.sees(thread, here);
}

// Whether the warp knows it, which starts a matrix operation as one, or waits for it.
bool Executor::warp_knows(uint32_t thread, const Writer &access) {
  const uint32_t first = thread / kLanes * kLanes;
  for (uint32_t t = first; t < std::min(first + kLanes, threads_); ++t)
    if (knows(t, access)) return true;
  return false;
}

bool Executor::write_is_ordered(uint32_t thread, const Readers &readers) {
  if (readers.matrix) {
    Writer reader = readers.of_lane(0);
    reader.stamp = matrix_reads_[readers.stamp].done;
    if (reader.stamp == kInFlight) return false;
    for (; reader.thread < std::min((readers.warp + 1) * kLanes, threads_); ++reader.thread)
      if (knows(thread, reader)) return true;
    return false;
  }
  for (uint32_t left = readers.lanes; left != 0; left &= left - 1)
    if (!knows(thread, readers.of_lane(static_cast<uint32_t>(std::countr_zero(left)))))
      return false;
  return true;
}

void Executor::order_shared(uint32_t thread, AccessKind kind, const void *address, size_t bytes,
                            Site site) {
  if (bytes == 0) return;
  AccessHistory &history = part_->shared.history();
  const uint32_t base = order_.clocks().base();
  const Writer mine = access_of(thread, How::kPlain, 0, site, false);
  if (kind == AccessKind::kWrite || kind == AccessKind::kAsyncWrite ||
      kind == AccessKind::kBulkWrite) {
    check_awaited(address, bytes, thread, site);
    return history.each(address, bytes, [&](AccessHistory::Cell &cell) {
      if (cell.writer.stamp > base && !knows(thread, cell.writer)) [[unlikely]]
        report_shared(mine, true, cell.writer, true, address, bytes);
      if (kind == AccessKind::kBulkWrite) check_proxy(thread, cell.writer, address, false, site);
      if (cell.readers.lanes != 0) {
        history.each_reader(cell, [&](const Readers &readers) {
          if ((readers.matrix || readers.stamp > base) && !write_is_ordered(thread, readers))
              [[unlikely]]
            report_overwritten(mine, readers, address, bytes);
        });
        history.forget_readers(cell);
      }
      cell.writer = mine;
    });
  }
  Readers reader = readers_of(mine);
  if (kind == AccessKind::kMatrixRead) {
    reader.matrix = true;
    reader.stamp = static_cast<uint32_t>(matrix_reads_.size());
  }
  history.each(address, bytes, [&](AccessHistory::Cell &cell) {
    if (cell.writer.stamp > base && !knows(thread, cell.writer) &&
        !(reader.matrix && warp_knows(thread, cell.writer))) [[unlikely]]
      report_shared(mine, false, cell.writer, true, address, bytes);
    if (reader.matrix) check_proxy(thread, cell.writer, address, true, site);
    history.add(cell, reader, base);
  });
}

// The bytes of a copy are there: its issuing thread has written them now, and read the source.
void Executor::order_landed(const PendingCopy &copy) {
  const Writer mine = access_of(running_, How::kPlain, 0, copy.site, false);
  part_->shared.history().each(part_->shared.data() + copy.offset, copy.bytes,
                               [&](AccessHistory::Cell &cell) { cell.writer = mine; });
  if (copy.source_history == nullptr) return;
  --sources_in_flight_;
  Readers reader = readers_of(mine);
  reader.launch = launch_.own;
  reader.block = block_;
  copy.source_history->each(copy.source, copy.bytes, [&](AccessHistory::Cell &cell) {
    copy.source_history->add(cell, reader, 0);
  });
}

void Executor::check_sources(uint32_t thread, const void *address, size_t bytes, Site site) {
  const auto *begin = static_cast<const std::byte *>(address);
  for (uint32_t t = 0; t < threads_; ++t)
    for (const PendingCopy &copy : fibers_[t].copies) {
      const auto *source = static_cast<const std::byte *>(copy.source);
      if (copy.source_history == nullptr || source >= begin + bytes || begin >= source + copy.bytes)
        continue;
      report(thread, HazardKind::kAsyncInFlightWrite,
             stream_->memory.place(address, bytes) +
                 " are written before the wait of the async copy issued at " +
                 to_string(copy.site) + ", which reads them",
             site, copy.site);
    }
  for (const BulkCopy &copy : bulk_copies_)
    for (const BulkPiece &piece : copy.pieces) {
      const auto *source = static_cast<const std::byte *>(piece.source);
      if (source == nullptr || source >= begin + bytes || begin >= source + piece.bytes) continue;
      report(thread, HazardKind::kAsyncInFlightWrite,
             stream_->memory.place(address, bytes) +
                 " are written before the phase that counts the bulk copy issued at " +
                 to_string(copy.site) + ", which reads them",
             site, copy.site);
    }
}

Writer Executor::access_of(uint32_t thread, How how, size_t bytes, Site site, bool takes) const {
  Writer access;
  access.site = site;
  access.stamp = order_.clocks().epoch(thread);
  access.thread = static_cast<uint16_t>(thread);
  access.how = how;
  access.bytes = static_cast<uint8_t>(how == How::kPlain ? 0 : bytes);
  access.takes = takes;
  return access;
}

// ---- between blocks ----

// Whether an earlier access of another block may happen at the same time as what runs now.
bool Executor::beside(const Writer &access) const {
  if (access.launch == launch_.own) return access.block != block_;
  return side_ && access.launch >= launch_.oldest &&
         !side_->ordered(side_->devices, side_->device, access.launch);
}

void Executor::check_other(const Writer &other, bool other_writes, const Writer &mine, bool writes,
                           const void *address, size_t bytes) {
  const bool here = other.launch == launch_.own && other.block == block_;
  if (!here && !beside(other)) return;
  // Two atomic operations on the same bytes need no order between them if the scope of each holds
  // both threads.
  const How least = here                          ? How::kAtomicInBlock
                    : other.launch == mine.launch ? How::kAtomic
                                                  : How::kAtomicInSystem;
  if (std::min(other.how, mine.how) >= least && other.bytes == mine.bytes && !other.takes) return;
  if (here ? knows(mine.thread, other) : order_.sees(mine.thread, other)) return;
  report_unordered(mine, writes, other, other_writes, stream_->memory.place(address, bytes));
}

void Executor::check_order(uint32_t thread, How how, bool writes, const void *address, size_t bytes,
                           Site site, bool takes) {
  AccessHistory *history = stream_->memory.history();
  if (history == nullptr) return;
  Writer mine = access_of(thread, how, bytes, site, takes);
  mine.launch = launch_.own;
  mine.block = block_;
  history->each(address, bytes, [&](AccessHistory::Cell &cell) {
    if (cell.writer.launch != 0) check_other(cell.writer, true, mine, writes, address, bytes);
    if (!writes) return history->add(cell, readers_of(mine), 0);
    if (cell.readers.lanes != 0) {
      history->each_reader(cell, [&](const Readers &readers) {
        for (uint32_t left = readers.lanes; left != 0; left &= left - 1)
          check_other(readers.of_lane(static_cast<uint32_t>(std::countr_zero(left))), false, mine,
                      true, address, bytes);
      });
      history->forget_readers(cell);
    }
    cell.writer = mine;
  });
}

void Executor::atomic_access(const void *address, size_t bytes, AtomicKind kind, AtomicOrder order,
                             Scope scope, Site site) {
  const bool loads = kind == AtomicKind::kLoad || kind == AtomicKind::kTake;
  const AccessKind access = loads                        ? AccessKind::kAtomicLoad
                            : kind == AtomicKind::kStore ? AccessKind::kAtomicStore
                                                         : AccessKind::kAtomic;
  if (explorer_)
    Turns::announce(*this,
                    {loads ? Operation::Kind::kRead : Operation::Kind::kWrite, address,
                     static_cast<uint32_t>(bytes)},
                    site);
  ::assay::simt::access(Space::kGlobal, access, address, bytes, bytes, site);
  if (stream_)
    check_order(running_, how_of(scope), !loads, address, bytes, site, kind == AtomicKind::kTake);
  order_.atomic(running_, address, kind, order, scope);
}

void Executor::fence(Scope scope, Site site) {
  fibers_[running_].site = site;
  order_.fence(running_, scope);
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
  if (explorer_) {
    word_waiters_.push_back(running_);
    Turns::announce(*this, {Operation::Kind::kRead, word, 4}, site, Wait::kWord);
    std::erase(word_waiters_, running_);
  } else if (!self.reached()) {
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
  while (ready_.empty() && !(explorer_ ? Turns::choose(*this) : wake_reached())) {
    if (complete_any_bulk_copy()) continue;
    if (undefined_) report_undefined();
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
