// SPDX-License-Identifier: Apache-2.0
// Barriers and warp collectives. Both count arrivals and release nobody before the last one.
#include <bit>

#include "kernels/simt/turns.h"

namespace assay::simt {
namespace {
constexpr uint32_t kPreemptAtSync = 4; // seeded schedules: mean completed waits per preemption
} // namespace

const char *to_string(Collective kind) {
  switch (kind) {
  case Collective::kWarpBarrier:
    return "warp_barrier";
  case Collective::kShflXor:
    return "shfl_xor";
  case Collective::kShflIdx:
    return "shfl_idx";
  case Collective::kShflUp:
    return "shfl_up";
  case Collective::kShflDown:
    return "shfl_down";
  case Collective::kBallot:
    return "ballot";
  case Collective::kAny:
    return "any";
  case Collective::kAll:
    return "all";
  case Collective::kLdmatrix:
    return "ldmatrix";
  case Collective::kMovmatrix:
    return "movmatrix";
  case Collective::kMma:
    return "mma";
  case Collective::kWgmma:
    return "wgmma";
  case Collective::kWgmmaFence:
    return "wgmma_fence";
  case Collective::kWgmmaCommit:
    return "wgmma_commit";
  case Collective::kWgmmaWait:
    return "wgmma_wait";
  }
  return "collective";
}

// ---- barriers ----

void Executor::release_barrier(Barrier &barrier) {
  if (explorer_) [[unlikely]]
    Turns::meet(*this, barrier.waiting);
  for (uint32_t word = 0; word < barrier.waiting.size(); ++word)
    ready_.insert_word(word, barrier.waiting[word]);
  barrier = {};
}

[[gnu::always_inline]] inline void Executor::block_barrier(Site site) {
  Fiber &fiber = fibers_[running_];
  fiber.site = site;
  Barrier &barrier = part_->block_barrier;
  if (part_->live != config_.block)
    report(running_, HazardKind::kDivergentBarrier,
           "block_barrier after " + std::to_string(config_.block - part_->live) + " of " +
               std::to_string(config_.block) + " threads have exited; " + who_waits_where(),
           site);
  if (barrier.arrived == 0) {
    barrier.site = site;
    barrier.first_thread = running_;
  } else if (!(barrier.site == site)) {
    report(running_, HazardKind::kDivergentBarrier,
           "thread " + std::to_string(running_) + " is at block_barrier " + to_string(site) +
               " but thread " + std::to_string(barrier.first_thread) + " waits at block_barrier " +
               to_string(barrier.site) + "; " + who_waits_where(),
           site, barrier.site);
  }
  if (++barrier.arrived == config_.block) {
    ++counters_->block_barriers;
    part_->meetings.fill({});
    if (config_.cluster == 1)
      order_.block_barrier();
    else
      order_.warps_meet(warps_at(barrier) | 1u << running_ / kLanes);
    release_barrier(barrier);
    maybe_preempt(kPreemptAtSync);
    return;
  }
  barrier.waiting[running_ / 64] |= uint64_t{1} << (running_ % 64);
  fiber.wait = Wait::kBlockBarrier;
  suspend();
}

uint32_t Executor::warps_at(const Barrier &barrier) {
  uint32_t warps = 0;
  for (uint32_t word = 0; word < barrier.waiting.size(); ++word) {
    if (static_cast<uint32_t>(barrier.waiting[word]) != 0) warps |= 1u << 2 * word;
    if (barrier.waiting[word] >> kLanes != 0) warps |= 2u << 2 * word;
  }
  return warps;
}

void Executor::check_whole_warps(const Barrier &barrier, uint32_t id, Site site) {
  for (uint32_t warp = 0; warp * kLanes < threads_; ++warp) {
    const uint32_t lanes = static_cast<uint32_t>(barrier.waiting[warp / 2] >> (warp % 2 * kLanes));
    if (lanes == 0 || lanes == ~0u) continue;
    report(running_, HazardKind::kDivergentBarrier,
           "named_barrier " + std::to_string(id) + " met by lanes " + lane_mask_text(lanes) +
               " of warp " + std::to_string(warp) + " only; it works on whole warps; " +
               who_waits_where(),
           site, barrier.site);
  }
}

// Two groups of warps must not use one barrier in turns without a block barrier between: on one
// schedule they take turns, on another they mix.
void Executor::check_same_warps(const Barrier &barrier, uint32_t id, Site site) {
  Meeting &last = part_->meetings[id];
  const uint32_t warps = warps_at(barrier);
  if (last.warps != 0 && last.warps != warps)
    report(running_, HazardKind::kDivergentBarrier,
           "named_barrier " + std::to_string(id) + " is met by warps " + lane_mask_text(warps) +
               ", and was by warps " + lane_mask_text(last.warps) + " at " + to_string(last.site) +
               " since the last block_barrier: on another schedule they mix",
           site, last.site);
  last = {warps, site};
}

[[gnu::always_inline]] inline void Executor::named_barrier(uint32_t id, uint32_t num_threads,
                                                           Site site) {
  Fiber &fiber = fibers_[running_];
  fiber.site = site;
  if (id == 0 || id >= kNamedBarriers)
    report(running_, HazardKind::kUnmodelled,
           "named_barrier id " + std::to_string(id) + "; 1 to 15 are possible", site);
  if (num_threads == 0 || num_threads % kLanes != 0 || num_threads > config_.block)
    report(running_, HazardKind::kUnmodelled,
           "named_barrier for " + std::to_string(num_threads) +
               " threads; it takes a multiple of 32, at most the block's " +
               std::to_string(config_.block),
           site);
  Barrier &barrier = part_->named_barriers[id];
  if (explorer_) [[unlikely]]
    Turns::announce(*this, {Operation::Kind::kMeet, &barrier}, site);
  if (barrier.arrived == 0) {
    barrier.expected = num_threads;
    barrier.site = site;
    barrier.first_thread = running_;
  } else if (barrier.expected != num_threads) {
    report(running_, HazardKind::kDivergentBarrier,
           "named_barrier " + std::to_string(id) + " for " + std::to_string(num_threads) +
               " threads, but thread " + std::to_string(barrier.first_thread) + " waits at " +
               to_string(barrier.site) + " for " + std::to_string(barrier.expected),
           site, barrier.site);
  }
  barrier.waiting[running_ / 64] |= uint64_t{1} << (running_ % 64);
  fiber.wait = Wait::kNamedBarrier;
  fiber.slot = static_cast<uint8_t>(id);
  if (++barrier.arrived == barrier.expected) {
    check_whole_warps(barrier, id, site);
    check_same_warps(barrier, id, site);
    ++counters_->named_barriers;
    order_.warps_meet(warps_at(barrier));
    barrier.waiting[running_ / 64] &= ~(uint64_t{1} << (running_ % 64));
    release_barrier(barrier);
    maybe_preempt(kPreemptAtSync);
    return;
  }
  suspend();
}

// ---- collectives ----

void Executor::check_new_group(const Warp &warp, const CollectiveArgs &args, Site site) {
  const uint32_t lane = running_ % kLanes;
  // The words are made where they are needed: this function runs for every collective.
  const auto what = [&] {
    return std::string(to_string(args.kind)) + " with mask " + lane_mask_text(args.mask);
  };
  if (!((args.mask >> lane) & 1))
    report(running_, HazardKind::kAbsentLane,
           what() + " called by lane " + std::to_string(lane) + ", which the mask does not name",
           site);
  if (const uint32_t gone = args.mask & warp.absent) {
    // A lane past the end of the block never ran and has no site.
    const uint32_t thread = thread_of_lane(static_cast<uint32_t>(std::countr_zero(gone)));
    report(running_, HazardKind::kAbsentLane,
           what() + " names lanes " + lane_mask_text(gone) + " that have exited; " +
               who_waits_where(),
           site, thread < fibers_.size() ? fibers_[thread].site : Site{});
  }
  // Two groups can never complete when each waits for a lane that has arrived in the other.
  for (uint32_t left = warp.active; left != 0; left &= left - 1) {
    const Group &other = warp.groups[static_cast<uint32_t>(std::countr_zero(left))];
    if (!((other.call.mask >> lane) & 1) || !(other.arrived & args.mask)) continue;
    report(running_, HazardKind::kAbsentLane,
           what() + " by lane " + std::to_string(lane) + " meets lanes " +
               lane_mask_text(other.arrived & args.mask) + " waiting at " +
               to_string(other.call.kind) + " with mask " + lane_mask_text(other.call.mask) + " " +
               to_string(other.call.site) + "; " + who_waits_where(),
           site, other.call.site);
  }
}

[[gnu::always_inline]] inline uint32_t Executor::join_group(Warp &warp, const CollectiveArgs &args,
                                                            Site site) {
  for (uint32_t left = warp.active; left != 0; left &= left - 1) {
    const uint32_t index = static_cast<uint32_t>(std::countr_zero(left));
    const WarpCall &call = warp.groups[index].call;
    if (call.mask == args.mask && call.kind == args.kind && call.bytes == args.bytes &&
        ((args.mask >> (running_ % kLanes)) & 1) && call.site == site)
      return index;
  }
  check_new_group(warp, args, site);
  const uint32_t index = static_cast<uint32_t>(std::countr_one(warp.active));
  warp.active |= 1u << index;
  Group &group = warp.groups[index];
  group.arrived = 0;
  group.call.kind = args.kind;
  group.call.mask = args.mask;
  group.call.bytes = args.bytes;
  group.call.site = site;
  return index;
}

[[gnu::always_inline]] inline void Executor::collective(const CollectiveArgs &args, Site site) {
  Fiber &fiber = fibers_[running_];
  fiber.site = site;
  const uint32_t warp_index = running_ / kLanes, lane = running_ % kLanes, bit = 1u << lane;
  Warp &warp = warps_[warp_index];
  const uint32_t index = join_group(warp, args, site);
  Group &group = warp.groups[index];
  group.call.in[lane] = args.in;
  group.call.out[lane] = args.out;
  group.call.arg[lane] = args.arg;
  group.arrived |= bit;
  if (group.arrived != args.mask) {
    fiber.wait = Wait::kCollective;
    fiber.slot = static_cast<uint8_t>(index);
    suspend();
    return;
  }
  if (args.apply) {
    fine_.applying = true;
    args.apply(group.call);
    fine_.applying = false;
  }
  ++counters_->collectives[static_cast<size_t>(args.kind)];
  if (args.kind == Collective::kWarpBarrier) order_.lanes_meet(warp_index, args.mask);
  warp.active &= ~(1u << index);
  if (explorer_) [[unlikely]]
    Turns::meet_lanes(*this, warp_index, args.mask);
  ready_.insert_lanes(warp_index, args.mask & ~bit);
  maybe_preempt(kPreemptAtSync);
}

// ---- the grid in front ----

void Executor::wait_for_previous_grid(Site site) {
  Fiber &fiber = fibers_[running_];
  fiber.site = site;
  fiber.early = false;
}

void Executor::start_next_grid(Site site) {
  Fiber &fiber = fibers_[running_];
  fiber.site = site;
  if (fiber.early)
    report(running_, HazardKind::kTooEarly,
           "start_next_grid before wait_for_previous_grid: three grids would overlap", site);
}

// ---- entry points ----

void block_barrier(Site site) { Executor::current().block_barrier(site); }
void named_barrier(uint32_t id, uint32_t num_threads, Site site) {
  Executor::current().named_barrier(id, num_threads, site);
}
void wait_for_previous_grid(Site site) { Executor::current().wait_for_previous_grid(site); }
void start_next_grid(Site site) { Executor::current().start_next_grid(site); }
void warp_collective(const CollectiveArgs &args, Site site) {
  Executor::current().collective(args, site);
}

} // namespace assay::simt
