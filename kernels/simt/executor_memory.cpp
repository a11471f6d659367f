// SPDX-License-Identifier: Apache-2.0
// Memory accesses and async copies.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kernels/simt/turns.h"

namespace assay::simt {
namespace {

std::string shared_range(size_t bytes, ptrdiff_t offset) {
  return std::to_string(bytes) + " bytes at shared offset " + std::to_string(offset);
}

} // namespace

[[gnu::noinline, gnu::cold]] void Executor::report_misaligned(uint32_t thread, const void *address,
                                                              size_t bytes, size_t alignment,
                                                              Site site) {
  char text[96];
  std::snprintf(text, sizeof text, "%zu-byte access at address %p, not a multiple of %zu", bytes,
                address, alignment);
  report(thread, HazardKind::kMisaligned, text, site);
}

[[gnu::always_inline]] inline void Executor::access(uint32_t thread, Space space, AccessKind kind,
                                                    const void *address, size_t bytes,
                                                    size_t alignment, Site site) {
  fibers_[thread].site = site;
  if ((reinterpret_cast<uintptr_t>(address) & (alignment - 1)) != 0)
    report_misaligned(thread, address, bytes, alignment, site);
  if (space == Space::kShared)
    shared_access(thread, kind, address, bytes, site);
  else
    global_access(thread, kind, address, bytes, site);
}

void Executor::shared_access(uint32_t thread, AccessKind kind, const void *address, size_t bytes,
                             Site site) {
  const size_t offset = part_->shared.offset_of(address);
  if (!part_->shared.contains(address, bytes))
    report(thread, HazardKind::kSharedOutOfBounds,
           shared_range(bytes, static_cast<ptrdiff_t>(offset)) + " of " +
               std::to_string(part_->shared.bytes()),
           site);
  switch (kind) {
  case AccessKind::kRead:
  case AccessKind::kMatrixRead:
    counters_->shared_load_bytes += bytes;
    if (part_->shared.all(SharedMemory::kDefined, offset, bytes))
      return order_shared(thread, kind, address, bytes, site);
    if (part_->shared.any(SharedMemory::kInFlight, offset, bytes)) {
      const Site copy = pending_site(offset, bytes);
      report(thread, HazardKind::kAsyncInFlightRead,
             shared_range(bytes, static_cast<ptrdiff_t>(offset)) +
                 " are read before the wait of the async copy issued at " + to_string(copy),
             site, copy);
    }
    await_writer(thread, HazardKind::kUninitSharedRead,
                 shared_range(bytes, static_cast<ptrdiff_t>(offset)) + " are read", address, bytes,
                 site);
  case AccessKind::kWrite:
  case AccessKind::kAsyncWrite:
  case AccessKind::kBulkWrite:
    if (part_->shared.any(SharedMemory::kInFlight, offset, bytes)) {
      const Site copy = pending_site(offset, bytes);
      report(thread, HazardKind::kAsyncInFlightWrite,
             shared_range(bytes, static_cast<ptrdiff_t>(offset)) +
                 " are written while the async copy issued at " + to_string(copy) + " is in flight",
             site, copy);
    }
    order_shared(thread, kind, address, bytes, site);
    counters_->shared_store_bytes += bytes;
    part_->shared.mark(kind == AccessKind::kWrite ? SharedMemory::kDefined
                                                  : SharedMemory::kInFlight,
                       offset, bytes);
    return;
  case AccessKind::kAtomic:
  case AccessKind::kAtomicLoad:
  case AccessKind::kAtomicStore:
  case AccessKind::kAsyncRead:
    break;
  }
  report(thread, HazardKind::kUnmodelled, "atomic operation on shared memory", site);
}

void Executor::global_access(uint32_t thread, AccessKind kind, const void *address, size_t bytes,
                             Site site) {
  const bool atomic = kind == AccessKind::kAtomic || kind == AccessKind::kAtomicLoad ||
                      kind == AccessKind::kAtomicStore;
  const bool reads = kind != AccessKind::kWrite && kind != AccessKind::kAtomicStore;
  const bool writes = !reads || kind == AccessKind::kAtomic;
  if (atomic) {
    ++counters_->atomics;
  } else if (kind == AccessKind::kRead) {
    ++counters_->global_load_requests;
    counters_->global_load_bytes += bytes;
  } else if (kind == AccessKind::kWrite) {
    ++counters_->global_store_requests;
    counters_->global_store_bytes += bytes;
  }
  if (part_->shared.bytes() != 0 && part_->shared.contains(address, bytes))
    report(thread, HazardKind::kGlobalOutOfBounds,
           "global access to shared memory (offset " +
               std::to_string(part_->shared.offset_of(address)) + ")",
           site);
  if (!stream_) return;
  HazardKind found;
  std::string text;
  if (fibers_[thread].early &&
      !stream_->memory.access_early(address, bytes, writes ? Direction::kWrite : Direction::kRead,
                                    launch_, text))
    report(thread, HazardKind::kTooEarly, text, site);
  if (reads && !stream_->memory.access(address, bytes, Direction::kRead, stream_->strict_global,
                                       launch_, found, text)) {
    if (found == HazardKind::kUninitGlobalRead)
      await_writer(thread, found, std::move(text), address, bytes, site);
    report(thread, found, text, site);
  }
  if (writes && !stream_->memory.access(address, bytes, Direction::kWrite, stream_->strict_global,
                                        launch_, found, text))
    report(thread, found, text, site);
  if (writes) {
    check_awaited(address, bytes, thread, site);
    if (sources_in_flight_ != 0 || !bulk_copies_.empty())
      check_sources(thread, address, bytes, site);
  }
  if (!atomic) check_order(thread, How::kPlain, writes, address, bytes, site);
}

void Executor::raw_access(const void *address, size_t bytes, bool write, const void *pc) {
  if (fine_.distance != 0) [[unlikely]]
    Turns::before_raw(*this, address, bytes);
  if (!part_->shared.data()) return;
  const ptrdiff_t offset = static_cast<ptrdiff_t>(part_->shared.offset_of(address));
  const ptrdiff_t zone = static_cast<ptrdiff_t>(GuardedBlock::kRedZone);
  if (offset < -zone || offset >= static_cast<ptrdiff_t>(part_->shared.bytes()) + zone) return;
  if (fine_.distance == 0) maybe_preempt(Turns::kAtSharedAccess);
  char text[128];
  std::snprintf(text, sizeof text, "raw %s at pc %p after this line: ", write ? "store" : "load",
                pc);
  const Site site = fibers_[running_].site;
  std::string range = text + shared_range(bytes, offset);
  if (!part_->shared.contains(address, bytes))
    report(running_, HazardKind::kSharedOutOfBounds,
           range + " of " + std::to_string(part_->shared.bytes()), site);
  const size_t at = static_cast<size_t>(offset);
  if (part_->shared.any(SharedMemory::kInFlight, at, bytes))
    report(running_, write ? HazardKind::kAsyncInFlightWrite : HazardKind::kAsyncInFlightRead,
           range + " while an async copy is in flight", site, pending_site(at, bytes));
  if (write)
    part_->shared.mark(SharedMemory::kDefined, at, bytes);
  else if (!part_->shared.all(SharedMemory::kDefined, at, bytes))
    await_writer(running_, HazardKind::kUninitSharedRead, std::move(range) + " are read", address,
                 bytes, site);
  order_shared(running_, write ? AccessKind::kWrite : AccessKind::kRead, address, bytes, site);
}

void *Executor::shared_base(size_t bytes, size_t alignment, Site site) {
  fibers_[running_].site = site;
  if (bytes > part_->shared.bytes())
    report(running_, HazardKind::kSharedOutOfBounds,
           "shared storage of " + std::to_string(bytes) + " bytes in a launch with " +
               std::to_string(part_->shared.bytes()),
           site);
  if (alignment > SharedMemory::kAlignment)
    report(running_, HazardKind::kMisaligned,
           "shared storage aligned to " + std::to_string(alignment) + "; at most " +
               std::to_string(SharedMemory::kAlignment) + " is possible",
           site);
  return part_->shared.data();
}

// ---- async copies ----

void Executor::async_copy(void *destination, const void *source, size_t bytes, bool valid,
                          Site site) {
  ++counters_->async_copies;
  // A copy that fills with zeros does not read its source: not even the address is checked.
  AccessHistory *source_history = nullptr;
  if (valid) {
    access(running_, Space::kGlobal, AccessKind::kAsyncRead, source, bytes, bytes, site);
    counters_->async_copy_bytes += bytes;
    if (stream_) source_history = stream_->memory.history();
    sources_in_flight_ += source_history != nullptr;
  }
  access(running_, Space::kShared, AccessKind::kAsyncWrite, destination, bytes, bytes, site);
  Fiber &fiber = fibers_[running_];
  PendingCopy copy{part_->shared.offset_of(destination),
                   bytes,
                   source,
                   fiber.groups_committed,
                   valid,
                   /*landed=*/false,
                   site,
                   source_history};
  const bool now = schedule_.copies == CopyCompletion::kAtIssue ||
                   (schedule_.copies == CopyCompletion::kSeeded && random_.below(2) == 0);
  if (now)
    land(copy);
  else
    std::memset(destination, 0xFF,
                bytes); // until the copy lands, nobody should find plausible bytes
  fiber.copies.push_back(copy);
}

void Executor::land(PendingCopy &copy) {
  std::byte *destination = part_->shared.data() + copy.offset;
  if (copy.valid)
    std::memcpy(destination, copy.source, copy.bytes);
  else
    std::memset(destination, 0, copy.bytes);
  copy.landed = true;
}

void Executor::async_commit() { ++fibers_[running_].groups_committed; }

void Executor::async_wait(uint32_t pending_groups, Site site) {
  Fiber &fiber = fibers_[running_];
  fiber.site = site;
  if (fiber.groups_committed <= pending_groups) return;
  const uint32_t complete_below = fiber.groups_committed - pending_groups;
  // Copies stand in the order of their issue, so that those of complete groups come first.
  auto copy = fiber.copies.begin();
  for (; copy != fiber.copies.end() && copy->group < complete_below; ++copy) {
    if (!copy->landed) land(*copy);
    part_->shared.mark(SharedMemory::kDefined, copy->offset, copy->bytes);
    order_landed(*copy);
  }
  fiber.copies.erase(fiber.copies.begin(), copy);
}

Site Executor::pending_site(size_t offset, size_t bytes) const {
  for (uint32_t t = 0; t < threads_; ++t)
    for (const PendingCopy &copy : fibers_[t].copies)
      if (copy.offset < offset + bytes && offset < copy.offset + copy.bytes) return copy.site;
  for (const BulkCopy &copy : bulk_copies_)
    if (copy.rank == part_->rank && copy.offset < offset + bytes &&
        offset < copy.offset + copy.bytes)
      return copy.site;
  return {};
}

// ---- entry points ----

// The rare case stands apart, so that the other one keeps its operands in registers.
[[gnu::noinline, gnu::cold]] static void access_finely(Space space, AccessKind kind,
                                                       const void *address, size_t bytes,
                                                       size_t alignment, Site site) {
  Executor &executor = Executor::current();
  Turns::before(executor, space, address, bytes);
  executor.access(executor.running(), space, kind, address, bytes, alignment, site);
}
void access(Space space, AccessKind kind, const void *address, size_t bytes, size_t alignment,
            Site site) {
  Executor &executor = Executor::current();
  if (Turns::fine(executor)) [[unlikely]]
    return access_finely(space, kind, address, bytes, alignment, site);
  if (space == Space::kShared) executor.maybe_preempt(Turns::kAtSharedAccess);
  executor.access(executor.running(), space, kind, address, bytes, alignment, site);
}
void access_for_lane(uint32_t lane, Space space, AccessKind kind, const void *address, size_t bytes,
                     size_t alignment, Site site) {
  Executor &executor = Executor::current();
  executor.access(executor.thread_of_lane(lane), space, kind, address, bytes, alignment, site);
}
void *shared_base(size_t bytes, size_t alignment, Site site) {
  return Executor::current().shared_base(bytes, alignment, site);
}
void async_copy(void *shared_destination, const void *global_source, size_t bytes, bool valid,
                Site site) {
  Executor &executor = Executor::current();
  Turns::before(executor, Space::kGlobal, shared_destination, bytes);
  executor.async_copy(shared_destination, global_source, bytes, valid, site);
}
void async_commit() { Executor::current().async_commit(); }
void async_wait(uint32_t pending_groups, Site site) {
  Executor::current().async_wait(pending_groups, site);
}

} // namespace assay::simt
