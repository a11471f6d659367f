// SPDX-License-Identifier: Apache-2.0
// The words of hazards. A message is one line that begins with file:line and says who waits where.
#include <bit>
#include <cstdio>
#include <map>
#include <utility>

#include "kernels/simt/executor.h"

namespace assay::simt {
namespace {

constexpr size_t kMaxListed = 8; // places in one message

// "0-31,40" from ascending indices.
std::string ranges(const std::vector<uint32_t> &threads) {
  std::string text;
  for (size_t i = 0; i < threads.size();) {
    size_t last = i;
    while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1)
      ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(threads[i]);
    if (last != i) text.append("-").append(std::to_string(threads[last]));
    i = last + 1;
  }
  return text;
}

} // namespace

std::string lane_mask_text(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

void Executor::record(Hazard hazard) {
  if (!hazard_) hazard_ = std::move(hazard);
}

void Executor::report(uint32_t thread, HazardKind kind, const std::string &text, Site site,
                      Site other) {
  // What came first may be the cause, but not of an access that lacks an order of its own.
  if (undefined_ && kind != HazardKind::kUnordered) report_undefined();
  Hazard hazard;
  hazard.kind = kind;
  hazard.site = site;
  hazard.other = other;
  hazard.block = block_ + part_of(thread).rank;
  hazard.thread = thread % config_.block;
  hazard.message = to_string(site) + ": " + to_string(kind) + ": " + text + " [block " +
                   std::to_string(hazard.block) + ", thread " + std::to_string(hazard.thread) + "]";
  record(std::move(hazard));
  throw HazardFound{};
}

std::string Executor::describe_wait(uint32_t thread) const {
  const Fiber &fiber = fibers_[thread];
  std::string at(1, ' ');
  at += to_string(fiber.site);
  if (fiber.exited) return fiber.site.file ? "exited, last at" + at : "exited";
  if ((thread == running_ && !stalled_) || ready_.contains(thread))
    return fiber.site.file ? "can run, last at" + at : "not started";
  switch (fiber.wait) {
  case Wait::kNone:
    break;
  case Wait::kTurn:
    return "can run, last at" + at;
  case Wait::kBlockBarrier:
    return "wait at block_barrier" + at;
  case Wait::kClusterBarrier:
    return "wait at cluster_barrier" + at;
  case Wait::kNamedBarrier: {
    const Barrier &barrier = part_of(thread).named_barriers[fiber.slot];
    return "wait at named_barrier " + std::to_string(fiber.slot) + " (" +
           std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
           " threads there)" + at;
  }
  case Wait::kMbarrier: {
    const Mbarrier &barrier = mbarriers_[fiber.slot];
    return "wait at mbarrier_wait (" + std::to_string(barrier.arrived) + " of " +
           std::to_string(barrier.count) + " arrivals in phase " + std::to_string(barrier.phase) +
           (barrier.expected == barrier.come
                ? ""
                : ", " + std::to_string(barrier.come) + " of " + std::to_string(barrier.expected) +
                      " bytes expected at " + to_string(barrier.expect)) +
           ", the latest at " +
           to_string(barrier.latest.file != nullptr ? barrier.latest : barrier.init) + ")" + at;
  }
  case Wait::kBytes:
    return "wait for bytes that nobody has written" + at;
  case Wait::kWord:
    return "wait for a word that another device writes" + at;
  case Wait::kCollective: {
    const Group &group = warps_[thread / kLanes].groups[fiber.slot];
    return std::string("wait at ") + to_string(group.call.kind) + " for lanes " +
           lane_mask_text(group.call.mask & ~group.arrived) + at;
  }
  }
  return "are nowhere";
}

std::string Executor::who_waits_where() const {
  std::map<std::string, std::vector<uint32_t>> places;
  for (uint32_t t = 0; t < threads_; ++t)
    places[describe_wait(t)].push_back(t);
  std::string text;
  size_t listed = 0;
  for (const auto &[place, threads] : places) {
    if (listed++ == kMaxListed)
      return text + "; and " + std::to_string(places.size() - kMaxListed) + " more places";
    if (!text.empty()) text += "; ";
    text += (threads.size() == 1 ? "thread " : "threads ") + ranges(threads) + ": " + place;
  }
  return text;
}

void Executor::report_stall() {
  stalled_ = true;
  // Where bytes are expected that no copy brings, that is the cause.
  for (uint32_t t = 0; t < threads_; ++t)
    if (const Mbarrier *barrier = short_of_bytes(t))
      report(t, HazardKind::kDeadlock, "no thread can run; " + who_waits_where(), fibers_[t].site,
             barrier->expect);
  // Where a collective waits for lanes that cannot come, it is the cause: who waits at a barrier
  // then waits for the collective.
  for (uint32_t w = 0; w * kLanes < threads_; ++w) {
    const Warp &warp = warps_[w];
    if (warp.active == 0) continue;
    const Group &group = warp.groups[static_cast<uint32_t>(std::countr_zero(warp.active))];
    const uint32_t absent = group.call.mask & ~group.arrived;
    const uint32_t first_absent = w * kLanes + static_cast<uint32_t>(std::countr_zero(absent));
    const uint32_t first_waiting =
        w * kLanes + static_cast<uint32_t>(std::countr_zero(group.arrived));
    report(first_waiting, HazardKind::kAbsentLane,
           std::string(to_string(group.call.kind)) + " waits for lanes " + lane_mask_text(absent) +
               ", which are elsewhere; " + who_waits_where(),
           group.call.site, fibers_[first_absent].site);
  }
  uint32_t first = 0;
  while (first + 1 < threads_ && fibers_[first].exited)
    ++first;
  Site other;
  for (uint32_t t = first; t < threads_; ++t)
    if (!fibers_[t].exited && !(fibers_[t].site == fibers_[first].site)) other = fibers_[t].site;
  if (other.file == nullptr && fibers_[first].wait == Wait::kMbarrier) {
    const Mbarrier &barrier = mbarriers_[fibers_[first].slot];
    other = barrier.latest.file != nullptr ? barrier.latest : barrier.init;
  }
  report(first, HazardKind::kDeadlock, "no thread can run; " + who_waits_where(),
         fibers_[first].site, other);
}

} // namespace assay::simt
