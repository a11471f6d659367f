// SPDX-License-Identifier: Apache-2.0
// Bulk copies from their issue to the end of the phase that counts their bytes.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/simt/turns.h"

namespace assay::simt {
namespace {

constexpr uint32_t kPreemptAtCopy = 4;     // seeded schedules: mean copies per preemption
constexpr uint32_t kCompleteAtBarrier = 4; // and mean uses of an mbarrier per completion

} // namespace

void Executor::check_destination(const Mbarrier &barrier, void *destination, uint32_t bytes,
                                 uint32_t alignment, Site site) {
  const Fiber &maker = fibers_[barrier.maker];
  if (std::max(maker.proxy_fence, maker.init_fence) < barrier.made)
    report(running_, HazardKind::kMissingFence,
           "a bulk copy uses an mbarrier that thread " + std::to_string(barrier.maker) +
               " initialised at " + to_string(barrier.init) +
               " without fence_mbarrier_init or fence_async_proxy since",
           site, barrier.init);
  access_for_lane(running_ % kLanes, Space::kShared, AccessKind::kBulkWrite, destination, bytes,
                  alignment, site);
}

// No fence makes what this launch wrote to global memory known to a bulk copy.
void Executor::check_source(BulkPiece &piece, Site site) {
  access_for_lane(running_ % kLanes, Space::kGlobal, AccessKind::kAsyncRead, piece.source,
                  piece.bytes, 1, site);
  counters_->async_copy_bytes += piece.bytes;
  if (stream_) piece.history = stream_->memory.history();
  if (piece.history == nullptr) return;
  piece.history->each(piece.source, piece.bytes, [&](const AccessHistory::Cell &cell) {
    const Writer &writer = cell.writer;
    if (writer.launch == 0 || (writer.launch != launch_.own && !beside(writer))) return;
    report(running_, HazardKind::kMissingFence,
           "a bulk copy reads " + stream_->memory.place(piece.source, piece.bytes) +
               ", which this launch wrote at " + to_string(writer.site.site()) +
               ": no fence makes that known to bulk copies",
           site, writer.site.site());
  });
}

// Lands what has not landed yet, of `one_in` pieces one by the schedule.
void Executor::land_some(BulkCopy &copy, uint32_t one_in) {
  std::byte *destination = parts_[copy.rank].shared.data() + copy.offset;
  for (BulkPiece &piece : copy.pieces) {
    if (piece.landed || (one_in > 1 && random_.below(one_in) != 0)) continue;
    piece.landed = true;
    if (piece.source != nullptr)
      std::memcpy(destination + piece.offset, piece.source, piece.bytes);
    else
      std::memset(destination + piece.offset, 0, piece.bytes);
  }
}

void Executor::bulk_copy(void *destination, uint32_t bytes, uint32_t alignment, void *address,
                         FunctionRef<void(std::vector<BulkPiece> &)> fill, Site site,
                         uint32_t blocks) {
  maybe_preempt(kPreemptAtCopy);
  maybe_complete_bulk_copy();
  if (explorer_)
    Turns::announce(*this, {Operation::Kind::kChange, blocks == 0 ? address : nullptr}, site);
  pieces_.clear();
  fill(pieces_);
  for (BulkPiece &piece : pieces_)
    if (piece.source != nullptr) check_source(piece, site);
  ++counters_->async_copies;
  if (blocks == 0) blocks = 1u << part_->rank;
  const size_t first = bulk_copies_.size();
  for (uint32_t left = blocks; left != 0; left &= left - 1)
    issue_bulk_copy(static_cast<uint32_t>(std::countr_zero(left)), destination, bytes, alignment,
                    address, site);
  const bool seeded = schedule_.copies == CopyCompletion::kSeeded;
  if (schedule_.copies == CopyCompletion::kAtIssue || (seeded && random_.below(3) == 0))
    complete_since(first);
  else if (seeded)
    land_some(bulk_copies_.back(), 2);
}

// The part of a copy that one block gets.
void Executor::issue_bulk_copy(uint32_t rank, void *destination, uint32_t bytes, uint32_t alignment,
                               void *address, Site site) {
  check_rank(rank, site);
  Part *const own = part_;
  void *const there = place_in(rank, destination);
  Mbarrier &barrier = mbarrier_at(place_in(rank, address), site);
  part_ = &parts_[rank];
  check_destination(barrier, there, bytes, alignment, site);
  std::memset(there, 0xFF, bytes); // nobody should find plausible bytes
  bulk_copies_.push_back({rank, part_->shared.offset_of(there), bytes, slot_of(barrier), running_,
                          false, site, pieces_});
  if (explorer_) Turns::announce_copy(*this, barrier.address);
  part_ = own;
  barrier.issued += bytes;
  barrier.copy = site;
  check_bytes(barrier, running_, site);
}

// Completes the copies that were issued last, from number `first` on.
void Executor::complete_since(size_t first) {
  uint32_t waiter = kMaxBlockThreads;
  for (size_t left = bulk_copies_.size() - first; left-- > 0;) {
    // A phase that ends takes its copies away, and leaves the earlier ones of others in place.
    const auto flying = std::find_if(bulk_copies_.rbegin(), bulk_copies_.rend(),
                                     [](const BulkCopy &copy) { return !copy.complete; });
    if (waiter != kMaxBlockThreads) ready_.insert(waiter);
    waiter = complete_bulk_copy(*flying);
  }
  go_on_with(waiter);
}

bool Executor::bytes_have_come(BulkCopy &copy) {
  land_some(copy, 1);
  copy.complete = true;
  Mbarrier &barrier = mbarriers_[copy.barrier];
  barrier.come += copy.bytes;
  return barrier.all_arrived() && barrier.come == barrier.expected;
}

uint32_t Executor::complete_bulk_copy(BulkCopy &copy) {
  Mbarrier &barrier = mbarriers_[copy.barrier];
  return bytes_have_come(copy) ? complete_phase(barrier) : kMaxBlockThreads;
}

// Completes a copy in flight, by the schedule the oldest, the newest, or any. Returns false where
// there is none. Who waited for its phase is ready then.
bool Executor::complete_any_bulk_copy() {
  uint32_t flying = 0;
  for (const BulkCopy &copy : bulk_copies_)
    flying += !copy.complete;
  if (flying == 0) return false;
  uint32_t nth = schedule_.order == Order::kSeeded       ? random_.below(flying)
                 : schedule_.order == Order::kDescending ? flying - 1
                                                         : 0;
  for (BulkCopy &copy : bulk_copies_)
    if (!copy.complete && nth-- == 0) {
      if (const uint32_t waiter = complete_bulk_copy(copy); waiter != kMaxBlockThreads)
        ready_.insert(waiter);
      return true;
    }
  return true;
}

void Executor::maybe_complete_bulk_copy() {
  if (!bulk_copies_.empty() && schedule_.copies == CopyCompletion::kSeeded &&
      random_.below(kCompleteAtBarrier) == 0)
    complete_any_bulk_copy();
}

// A phase ends. Its copies have written now, and read their sources.
void Executor::end_bulk_copies(Mbarrier &barrier) {
  const uint32_t slot = slot_of(barrier);
  Writer mine;
  mine.thread = static_cast<uint16_t>(order_.copier(slot));
  mine.stamp = order_.copied(slot);
  mine.launch = launch_.own;
  mine.block = block_;
  for (BulkCopy &copy : bulk_copies_) {
    if (copy.barrier != slot) continue;
    if (!copy.complete)
      report(copy.thread, HazardKind::kBarrierMisuse,
             "a phase of an mbarrier ends with a bulk copy in flight that it should count; bytes "
             "expected at " +
                 to_string(barrier.expect),
             copy.site, barrier.expect);
    mine.site = copy.site;
    SharedMemory &shared = parts_[copy.rank].shared;
    shared.mark(SharedMemory::kDefined, copy.offset, copy.bytes);
    shared.history().each(shared.data() + copy.offset, copy.bytes,
                          [&](AccessHistory::Cell &cell) { cell.writer = mine; });
    for (const BulkPiece &piece : copy.pieces) {
      if (piece.history == nullptr) continue;
      piece.history->each(piece.source, piece.bytes, [&](AccessHistory::Cell &cell) {
        piece.history->add(cell, readers_of(mine), 0);
      });
    }
  }
  std::erase_if(bulk_copies_, [&](const BulkCopy &copy) { return copy.barrier == slot; });
}

// ---- entry points ----

void bulk_copy(void *shared_destination, uint32_t bytes, uint32_t alignment, void *barrier,
               FunctionRef<void(std::vector<BulkPiece> &)> fill, Site site, uint32_t blocks) {
  Executor::current().bulk_copy(shared_destination, bytes, alignment, barrier, fill, site, blocks);
}

} // namespace assay::simt
