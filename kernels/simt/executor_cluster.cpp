// SPDX-License-Identifier: Apache-2.0
// Clusters: the blocks of one run at once, as parts of one set of threads. A thread has a number in
// the cluster; reports give the one that it has in its block.
#include <algorithm>

#include "kernels/simt/turns.h"

namespace assay::simt {

Executor::Part &Executor::part_of(uint32_t thread) { return parts_[thread / config_.block]; }
const Executor::Part &Executor::part_of(uint32_t thread) const {
  return parts_[thread / config_.block];
}

void Executor::enter_part(uint32_t thread) {
  part_ = &part_of(thread);
  thread_view.thread = thread % config_.block;
  thread_view.cluster_rank = part_->rank;
  thread_view.block_idx[0] = (block_ + part_->rank) % config_.grid_x;
}

std::string Executor::name_of(uint32_t thread) const {
  const std::string name = "thread " + std::to_string(thread % config_.block);
  if (config_.cluster == 1) return name;
  return name + " of block " + std::to_string(block_ + part_of(thread).rank);
}

void Executor::check_rank(uint32_t rank, Site site) {
  if (rank >= config_.cluster)
    report(running_, HazardKind::kUnmodelled,
           "block " + std::to_string(rank) + " of a cluster of " + std::to_string(config_.cluster),
           site);
}

void *Executor::place_in(uint32_t rank, const void *address) const {
  return parts_[rank].shared.data() + part_->shared.offset_of(address);
}

// ---- shared memory of other blocks ----

// A block must have begun before another one uses its memory, and must not end before.
void Executor::use_part(uint32_t rank, Site site) {
  fibers_[running_].site = site;
  check_rank(rank, site);
  if (rank == part_->rank) return;
  Part &part = parts_[rank];
  const uint32_t first = rank * config_.block;
  bool begun = false;
  for (uint32_t t = first; t < first + config_.block && !begun; ++t)
    begun = order_.clocks().known(running_, t) > part_start_;
  if (!begun)
    report(running_, HazardKind::kUnordered,
           "shared memory of block " + std::to_string(block_ + rank) +
               " is used, and nothing orders that behind its start",
           site, fibers_[first].site);
  if (part.live == 0)
    report(running_, HazardKind::kUnordered,
           "shared memory of block " + std::to_string(block_ + rank) +
               " is used, which has ended, last at " + to_string(fibers_[first].site),
           site, fibers_[first].site);
  part.uses[running_] = {order_.clocks().epoch(running_), site};
}

void Executor::end_part(Part &part, uint32_t thread) {
  const uint32_t first = part.rank * config_.block;
  for (uint32_t user = 0; user < threads_; ++user) {
    const Use &use = part.uses[user];
    if (use.stamp == 0) continue;
    bool known = false;
    for (uint32_t t = first; t < first + config_.block && !known; ++t)
      known = order_.clocks().knows(t, user, use.stamp);
    if (!known)
      report(thread, HazardKind::kUnordered,
             "a block ends, and nothing orders that behind " + name_of(user) +
                 ", which used its shared memory at " + to_string(use.site),
             fibers_[thread].site, use.site);
  }
  for (const BulkCopy &copy : bulk_copies_)
    if (copy.rank == part.rank)
      report(thread, HazardKind::kAsyncInFlightRead,
             "a block ends before the phase that counts the bulk copy issued at " +
                 to_string(copy.site),
             fibers_[thread].site, copy.site);
}

void *Executor::cluster_access(AccessKind kind, const void *address, size_t bytes, uint32_t rank,
                               Site site) {
  Turns::before(*this, Space::kShared, address, bytes);
  use_part(rank, site);
  void *const there = place_in(rank, address);
  fine_.checked = there;
  Part *const own = part_;
  part_ = &parts_[rank];
  access_for_lane(running_ % kLanes, Space::kShared, kind, there, bytes, bytes, site);
  part_ = own;
  return there;
}

// ---- the barrier of a cluster ----

void Executor::cluster_barrier(Site site) {
  Fiber &fiber = fibers_[running_];
  fiber.site = site;
  Barrier &barrier = cluster_barrier_;
  if (barrier.arrived == 0) barrier.site = site;
  barrier.waiting[running_ / 64] |= uint64_t{1} << (running_ % 64);
  fiber.wait = Wait::kClusterBarrier;
  if (++barrier.arrived == live_) end_cluster_barrier();
  suspend();
}

// Those who have exited do not count, and tell nothing.
void Executor::end_cluster_barrier() {
  if (live_ == threads_)
    order_.block_barrier();
  else
    order_.warps_meet(warps_at(cluster_barrier_));
  for (uint32_t rank = 0; rank < config_.cluster; ++rank)
    parts_[rank].meetings.fill({});
  release_barrier(cluster_barrier_);
}

// ---- entry points ----

void cluster_barrier(Site site) { Executor::current().cluster_barrier(site); }
void *cluster_access(AccessKind kind, const void *address, size_t bytes, uint32_t rank, Site site) {
  return Executor::current().cluster_access(kind, address, bytes, rank, site);
}

} // namespace assay::simt
