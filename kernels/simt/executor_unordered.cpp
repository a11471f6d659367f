// SPDX-License-Identifier: Apache-2.0
// Two accesses that nothing orders: their reports, and the search for the second party of a read of
// bytes that nobody has written.
#include <bit>
#include <cstdlib>
#include <utility>

#include "kernels/simt/executor.h"

namespace assay::simt {
namespace {

// `wide`: the scope must hold more than one device.
std::string verb(How how, bool writes, bool wide) {
  const std::string done = writes ? "changed" : "read";
  if (how == How::kPlain) return writes ? "written" : "read";
  if (how == How::kAtomicInBlock) return done + " atomically at the scope of a block";
  if (how == How::kAtomic && wide) return done + " atomically at the scope of a device";
  return done + " atomically";
}

} // namespace

void Executor::report_unordered(const Writer &mine, bool writes, const Writer &other,
                                bool other_writes, const std::string &place) {
  const bool here = other.launch == launch_.own && other.block == block_;
  const bool wide = other.launch != launch_.own;
  std::string whose;
  if (!here)
    whose = "block " + std::to_string(other.block) + (wide ? " of another device" : "") + ", ";
  whose += here && other.thread >= threads_ ? "a bulk copy"
           : here                           ? name_of(other.thread)
                                            : "thread " + std::to_string(other.thread);
  report(mine.thread, HazardKind::kUnordered,
         place + " are " + verb(mine.how, writes, wide) + ", and nothing orders that behind " +
             whose + ", by which they were " + verb(other.how, other_writes, wide) + " at " +
             to_string(other.site.site()),
         mine.site.site(), other.site.site());
}

void Executor::report_shared(const Writer &mine, bool writes, const Writer &other,
                             bool other_writes, const void *address, size_t bytes) {
  Writer in_block = other;
  in_block.launch = launch_.own;
  in_block.block = block_;
  report_unordered(mine, writes, in_block, other_writes,
                   std::to_string(bytes) + " bytes at shared offset " +
                       std::to_string(part_->shared.offset_of(address)));
}

void Executor::report_overwritten(const Writer &mine, const Readers &readers, const void *address,
                                  size_t bytes) {
  if (readers.matrix && matrix_reads_[readers.stamp].done == kInFlight) {
    const Site issue = matrix_reads_[readers.stamp].site;
    report(mine.thread, HazardKind::kAsyncInFlightWrite,
           std::to_string(bytes) + " bytes at shared offset " +
               std::to_string(part_->shared.offset_of(address)) +
               " are written before the wait of the matrix operation issued at " +
               to_string(issue) + ", which reads them",
           mine.site.site(), issue);
  }
  uint32_t lane = 0;
  for (uint32_t left = readers.matrix ? 0 : readers.lanes; left != 0; left &= left - 1) {
    lane = static_cast<uint32_t>(std::countr_zero(left));
    if (!knows(mine.thread, readers.of_lane(lane))) break;
  }
  report_shared(mine, true, readers.of_lane(lane), false, address, bytes);
}

// ---- bytes that nobody has written ----

// The thread stays here while the others run on, as far as they can without it. Who then writes the
// bytes is not ordered before the read.
void Executor::await_writer(uint32_t thread, HazardKind kind, std::string text, const void *address,
                            size_t bytes, Site site) {
  const auto *begin = static_cast<const std::byte *>(address);
  if (!undefined_) undefined_ = {begin, begin + bytes, thread, kind, std::move(text), site};
  std::string().swap(text); // a fiber that is left behind destroys nothing
  fibers_[running_].wait = Wait::kBytes;
  suspend();
  std::abort(); // unreachable: the launch ends with a report
}

void Executor::found_writer(uint32_t thread, Site site) {
  const Undefined read = *std::exchange(undefined_, std::nullopt);
  report(read.thread, HazardKind::kUnordered,
         read.text + ", and nothing orders that behind thread " + std::to_string(thread) +
             ", by which they are written at " + to_string(site),
         read.site, site);
}

void Executor::report_undefined() {
  const Undefined read = *std::exchange(undefined_, std::nullopt);
  report(read.thread, read.kind, read.text + " but never written", read.site);
}

} // namespace assay::simt
