// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/executor.h"
#include "kernels/simt/ranks.h"
#include "kernels/simt/turns.h"

#include <bit>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace assay::simt {

constinit thread_local ThreadView thread_view;
constinit thread_local NumberTable *number_table = nullptr;
constinit thread_local Executor *Executor::active_ = nullptr;

// ---- launching ----

void Executor::refuse_outside_launch() {
  throw std::logic_error("assay::simt: device code called outside a launch");
}

namespace {

std::string wrong_cluster(const LaunchConfig &config, bool on_rank) {
  if (config.cluster == 1) return "";
  const std::string text = "cluster of " + std::to_string(config.cluster);
  if (config.cluster == 0 || config.cluster > kMaxClusterBlocks)
    return text + " blocks; 1 to " + std::to_string(kMaxClusterBlocks) + " are possible";
  if (config.grid_x % config.cluster != 0) return text + " blocks, of which grid_x is no multiple";
  if (config.block % 128 != 0 || config.block * config.cluster > kMaxBlockThreads)
    return text + " blocks with " + std::to_string(config.block) +
           " threads each; whole warpgroups, and " + std::to_string(kMaxBlockThreads) +
           " threads in all, are possible";
  return on_rank ? text + " blocks beside other devices" : "";
}

} // namespace

bool Executor::config_ok(const LaunchConfig &config) {
  const uint64_t blocks = static_cast<uint64_t>(config.grid_x) * config.grid_y * config.grid_z;
  std::string text;
  if (config.block == 0 || config.block > kMaxBlockThreads)
    text = "block of " + std::to_string(config.block) + " threads; 1 to " +
           std::to_string(kMaxBlockThreads) + " are possible";
  else if (config.shared_bytes > kMaxSharedBytes)
    text = std::to_string(config.shared_bytes) + " bytes of shared memory; at most " +
           std::to_string(kMaxSharedBytes) + " are possible";
  else if (const std::string wrong = wrong_cluster(config, side_.has_value()); !wrong.empty())
    text = wrong;
  else if (blocks == 0 || blocks > 0xfffffffeull)
    text = "grid of " + std::to_string(blocks) + " blocks; 1 to 2^32 - 2 are possible";
  else
    return true;
  Hazard hazard;
  hazard.message = "unmodelled: launch with a " + text;
  record(std::move(hazard));
  return false;
}

LaunchStatus Executor::run(Stream *stream, const LaunchConfig &config, FunctionRef<void()> body) {
  stream_ = stream;
  counters_ = stream ? &stream->counters : &scratch_counters_;
  schedule_ = stream ? stream->schedule : Schedule{};
  explorer_ = Explorer::of(stream);
  if (explorer_) schedule_ = {};
  fine_.distance = Turns::distance_of(schedule_);
  random_ = ScheduleRandom(schedule_.seed);
  number_table = stream ? &stream->numbers : nullptr;
  next_hold_ = 0;
  until_hold_ = schedule_.holds.empty() ? 0 : schedule_.holds[0];
  config_ = config;
  body_ = &body;
  hazard_.reset();
  side_.reset();
  ++counters_->launches;
  if (config_ok(config)) {
    const uint32_t blocks = config.grid_x * config.grid_y * config.grid_z;
    launch_.own = stream ? stream->memory.begin_launch() : 1;
    launch_.front = launch_.own > 1 ? launch_.own - 1 : 0;
    launch_.oldest = launch_.own;
    own_graph_.clear();
    order_.begin_launch(own_graph_, launch_.own, 0, 0);
    std::vector<uint32_t> permutation;
    const uint32_t clusters = blocks / config.cluster;
    if (schedule_.order == Order::kSeeded) {
      permutation.resize(clusters);
      std::iota(permutation.begin(), permutation.end(), 0u);
      for (uint32_t i = clusters; i > 1; --i)
        std::swap(permutation[i - 1], permutation[random_.below(i)]);
    }
    if (explorer_) Turns::run_blocks(*this, clusters);
    for (uint32_t i = 0; i < clusters && !hazard_ && !explorer_; ++i) {
      const uint32_t ordered = schedule_.order == Order::kDescending ? clusters - 1 - i : i;
      run_block((permutation.empty() ? ordered : permutation[i]) * config.cluster);
    }
  }
  number_table = nullptr;
  if (!hazard_) return LaunchStatus::kOk;
  if (stream_) stream_->hazards.push_back(std::move(*hazard_));
  return LaunchStatus::kHazard;
}

void Executor::reset_block(uint32_t linear) {
  const uint32_t threads = config_.block * config_.cluster;
  const uint32_t warps = (threads + kLanes - 1) / kLanes;
  block_ = linear;
  threads_ = threads;
  if (fibers_.size() < threads) fibers_.resize(threads);
  if (warps_.size() < warps) warps_.resize(warps);
  ready_.clear();
  for (uint32_t t = 0; t < threads; ++t) {
    Fiber &fiber = fibers_[t];
    fiber.wait = Wait::kNone;
    fiber.exited = false;
    fiber.early = config_.enable_pdl;
    fiber.groups_committed = 0;
    fiber.proxy_fence = fiber.init_fence = 0;
    fiber.site = {};
    fiber.copies.clear();
    stacks_.prepare(fiber.context, t, &Executor::fiber_entry);
    ready_.insert(t);
  }
  for (uint32_t w = 0; w < warps; ++w) {
    const uint32_t present = std::min(kLanes, threads - w * kLanes);
    warps_[w].absent = present == kLanes ? 0 : ~0u << present;
    warps_[w].active = 0;
    warps_[w].fenced = false;
    warps_[w].matrix_groups = warps_[w].matrix_steps = 0;
    warps_[w].matrix.clear();
    warps_[w].committed = {};
  }
  live_ = threads;
  stalled_ = fine_.applying = false;
  fine_.checked = nullptr;
  fine_.bytes = 0;
  cluster_barrier_ = {};
  mbarriers_.clear();
  bulk_copies_.clear();
  word_waiters_.clear();
  undefined_.reset();
  matrix_reads_.clear();
  sources_in_flight_ = 0;
  matrix_steps_.assign((warps + kGroupWarps - 1) / kGroupWarps, {});
  if (parts_.size() < config_.cluster) parts_.resize(config_.cluster);
  for (uint32_t rank = 0; rank < config_.cluster; ++rank) {
    Part &part = parts_[rank];
    part.rank = rank;
    part.live = config_.block;
    part.block_barrier = {};
    part.named_barriers.fill({});
    part.meetings.fill({});
    part.uses.assign(config_.cluster > 1 ? threads : 0, {});
    part.shared.begin_block(config_.shared_bytes);
  }
  part_ = parts_.data();
  order_.begin_block(linear, threads);
  part_start_ = order_.clocks().base();
  thread_view.block_dim = config_.block;
  thread_view.cluster_rank = 0;
  thread_view.cluster_size = config_.cluster;
  thread_view.block_idx[0] = linear % config_.grid_x;
  thread_view.block_idx[1] = linear / config_.grid_x % config_.grid_y;
  thread_view.block_idx[2] = linear / config_.grid_x / config_.grid_y;
  thread_view.grid_dim[0] = config_.grid_x;
  thread_view.grid_dim[1] = config_.grid_y;
  thread_view.grid_dim[2] = config_.grid_z;
}

void Executor::run_block(uint32_t linear) {
  reset_block(linear);
  counters_->blocks += config_.cluster;
  enter_block();
  check_finished_block();
}

void Executor::enter_block() {
  active_ = this;
  now_running(ready_.take(schedule_.order, random_));
  switch_fiber(main_, fibers_[running_].context);
  active_ = nullptr;
}

void Executor::check_finished_block() {
  if (hazard_) return abandon_block();
  check_left_behind();
  if (hazard_) return;
  for (uint32_t rank = 0; rank < config_.cluster; ++rank) {
    const SharedMemory &shared = parts_[rank].shared;
    const ptrdiff_t damaged = shared.first_changed_guard();
    if (damaged == GuardedBlock::kIntact) continue;
    Hazard hazard;
    hazard.kind = HazardKind::kRedZoneWritten;
    hazard.buffer = "shared memory";
    hazard.block = block_ + rank;
    hazard.message = "red-zone-written: a guard byte at offset " + std::to_string(damaged) +
                     " of the shared memory (" + std::to_string(shared.bytes()) +
                     " bytes) was changed [block " + std::to_string(hazard.block) + "]";
    record(std::move(hazard));
  }
}

// ---- a block at a time ----

void Executor::begin_launch(Stream &stream, const LaunchConfig &config,
                            const FunctionRef<void()> &body, const Side &side) {
  stream_ = &stream;
  counters_ = &stream.counters;
  schedule_ = stream.schedule;
  fine_.distance = Turns::distance_of(schedule_);
  config_ = config;
  body_ = &body;
  hazard_.reset();
  side_ = side;
  launch_ = side.numbers;
  order_.begin_launch(*side.graph, launch_.own, side.device, side.before);
}

void Executor::begin_block(uint32_t linear) {
  if (!config_ok(config_)) return;
  random_ = ScheduleRandom(schedule_.seed + uint64_t{launch_.own} * 0x10001 + linear);
  next_hold_ = 0;
  until_hold_ = schedule_.holds.empty() ? 0 : schedule_.holds[0];
  reset_block(linear);
  ++counters_->blocks;
  view_ = thread_view;
  yielded_ = false;
}

Executor::Progress Executor::resume() {
  if (hazard_) return Progress::kHazard;
  thread_view = view_;
  number_table = &stream_->numbers;
  if (yielded_) {
    yielded_ = false;
    active_ = this;
    switch_fiber(main_, fibers_[running_].context);
    active_ = nullptr;
  } else {
    enter_block();
  }
  view_ = thread_view;
  number_table = nullptr;
  if (yielded_) return Progress::kYielded;
  check_finished_block();
  return hazard_ ? Progress::kHazard : Progress::kFinished;
}

void Executor::yield() {
  yielded_ = true;
  switch_fiber(fibers_[running_].context, main_);
}

// ---- switching ----

void Executor::hold_running_warp() {
  ready_.hold(running_ / kLanes);
  if (++next_hold_ < schedule_.holds.size()) until_hold_ = schedule_.holds[next_hold_];
}

void Executor::fiber_entry(boost::context::detail::transfer_t transfer) {
  Executor &executor = *active_;
  enter_fiber(transfer, executor.main_);
  FiberContext &self = executor.fibers_[executor.running_].context;
  FiberContext *next = &executor.main_;
  try {
    (*executor.body_)();
    next = executor.leave_thread();
  } catch (const HazardFound &) {
    // The hazard is recorded already. The other fibers are abandoned where they stand.
  } catch (const std::exception &error) {
    try {
      executor.report(executor.running_, HazardKind::kUnmodelled,
                      std::string("an exception left the kernel: ") + error.what(),
                      executor.fibers_[executor.running_].site);
    } catch (const HazardFound &) {
    }
  }
  exit_fiber(self, *next);
}

FiberContext *Executor::leave_thread() {
  const uint32_t self = running_;
  Fiber &fiber = fibers_[self];
  if (fiber.early)
    report(self, HazardKind::kTooEarly, "a thread exits without wait_for_previous_grid",
           fiber.site);
  if (!fiber.copies.empty())
    report(self, HazardKind::kAsyncInFlightRead,
           "a thread exits before the wait of the async copy issued at " +
               to_string(fiber.copies.front().site),
           fiber.site, fiber.copies.front().site);
  fiber.exited = true;
  --live_;
  Warp &warp = warps_[self / kLanes];
  const uint32_t bit = 1u << (self % kLanes);
  warp.absent |= bit;
  for (uint32_t left = warp.active; left != 0; left &= left - 1) {
    const Group &group = warp.groups[static_cast<uint32_t>(std::countr_zero(left))];
    if (group.call.mask & bit)
      report(self, HazardKind::kAbsentLane,
             "lane " + std::to_string(self % kLanes) + " exited while " +
                 to_string(group.call.kind) + " with mask " + lane_mask_text(group.call.mask) +
                 " waits for it; " + who_waits_where(),
             group.call.site, fiber.site);
  }
  if (part_->block_barrier.arrived != 0)
    report(self, HazardKind::kDivergentBarrier,
           "thread " + std::to_string(self) + " exited while others wait at block_barrier; " +
               who_waits_where(),
           part_->block_barrier.site, fiber.site);
  if (--part_->live == 0 && config_.cluster > 1) end_part(*part_, self);
  if (live_ == 0) return &main_;
  if (cluster_barrier_.arrived != 0 && cluster_barrier_.arrived == live_) end_cluster_barrier();
  if (ready_.empty()) find_ready();
  now_running(ready_.take(schedule_.order, random_));
  ++counters_->fiber_switches;
  return &fibers_[running_].context;
}

// ---- entry points ----

LaunchStatus launch(Stream *stream, const LaunchConfig &config, FunctionRef<void()> thread_body) {
  if (Executor::active()) throw std::logic_error("assay::simt: launch inside a launch");
  if (on_rank(stream)) return launch_on_rank(config, thread_body);
  // A host thread keeps its stacks and tables between launches, and frees them when it ends.
  thread_local Executor executor;
  return executor.run(stream, config, thread_body);
}

void report(HazardKind kind, const std::string &text, Site site, Site other) {
  Executor &executor = Executor::current();
  executor.report(executor.running(), kind, text, site, other);
}
void report_for_lane(uint32_t lane, HazardKind kind, const std::string &text, Site site,
                     Site other) {
  Executor &executor = Executor::current();
  executor.report(executor.thread_of_lane(lane), kind, text, site, other);
}

} // namespace assay::simt
