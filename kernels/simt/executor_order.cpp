// SPDX-License-Identifier: Apache-2.0
// Order of memory between the blocks of a grid: atomic operations, fences, and plain accesses.
#include "kernels/simt/executor.h"

namespace assay::simt {
namespace {

const char *verb(const Writer &access, bool writes) {
  if (access.how == Writer::How::kAtomic) return "changed atomically";
  if (access.how == Writer::How::kAtomicInBlock)
    return "changed atomically at the scope of a block";
  return writes ? "written" : "read";
}

} // namespace

void Executor::check_other_block(const Writer &writer, const Writer &mine, bool writes,
                                 const void *address, size_t bytes) {
  // Two atomic operations need no order between them if the scope of each holds both blocks.
  if (writer.how == Writer::How::kAtomic && mine.how == Writer::How::kAtomic) return;
  if (order_.sees(mine.thread, writer)) return;
  report(mine.thread, HazardKind::kUnordered,
         stream_->memory.place(address, bytes) + " are " + verb(mine, writes) +
             ", and nothing orders that behind block " + std::to_string(writer.block) +
             ", thread " + std::to_string(writer.thread) + ", by which they were " +
             verb(writer, true) + " at " + to_string(writer.site),
         mine.site, writer.site);
}

void Executor::check_order(uint32_t thread, Writer::How how, bool writes, const void *address,
                           size_t bytes, Site site) {
  const auto mine = [&] {
    return Writer{site, launch_, block_, order_.stamp(), static_cast<uint16_t>(thread), how};
  };
  const auto look = [&](const Writer &writer) {
    if (writer.launch == launch_ && writer.block != block_) [[unlikely]]
      check_other_block(writer, mine(), writes, address, bytes);
  };
  LastWriters &writers = *stream_->memory.last_writers();
  if (!writes) return writers.read(address, bytes, look);
  order_.wrote();
  writers.write(address, bytes, [&](Writer &writer) {
    look(writer);
    writer = mine();
  });
}

void Executor::atomic_access(const void *address, size_t bytes, AtomicOrder order, Scope scope,
                             Site site) {
  ::assay::simt::access(Space::kGlobal, AccessKind::kAtomic, address, bytes, bytes, site);
  if (!has_peers_ || stream_->memory.last_writers() == nullptr) return;
  const auto how = scope == Scope::kGpu ? Writer::How::kAtomic : Writer::How::kAtomicInBlock;
  check_order(running_, how, /*writes=*/true, address, bytes, site);
  order_.atomic(running_, address, order, scope);
}

void Executor::fence(Scope scope, Site site) {
  fibers_[running_].site = site;
  if (has_peers_) order_.fence(running_, scope);
}

// ---- entry points ----

void atomic_access(const void *address, size_t bytes, AtomicOrder order, Scope scope, Site site) {
  Executor::current().atomic_access(address, bytes, order, scope, site);
}
void fence(Scope scope, Site site) { Executor::current().fence(scope, site); }

} // namespace assay::simt
