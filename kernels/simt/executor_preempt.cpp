// SPDX-License-Identifier: Apache-2.0
// Schedules that let others run in front of any access, checked or raw.
#include "kernels/simt/turns.h"

namespace assay::simt {
namespace {

#if defined(ASSAY_HAZARDS)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif
// What a seed may draw. A short distance mixes the steps of threads, and a long one lets some
// finish what others are in the middle of.
constexpr uint32_t kDistances[] = {2, 8, 32, 128};

} // namespace

uint32_t Turns::distance_of(const Schedule &schedule) {
  if (schedule.order != Order::kSeeded) return 0;
  if (schedule.distance != 0 || !kInstrumented) return schedule.distance;
  return kDistances[ScheduleRandom(~schedule.seed).below(4)];
}

// Any ready thread is as likely as another one: ReadySet::take() hardly ever takes some of few.
void Turns::let_others_run(Executor &e) {
  if (e.until_hold_ != 0) return e.maybe_preempt(e.fine_.distance);
  if (e.random_.below(e.fine_.distance) != 0) return;
  e.ready_.insert(e.running_);
  const uint32_t next = e.ready_.take_uniformly(e.random_);
  if (next != e.running_) e.switch_to(next);
}

void Turns::before_checked(Executor &e, const void *address, size_t bytes) {
  let_others_run(e);
  e.fine_.checked = address;
  e.fine_.bytes = bytes;
}

// A raw access to what was checked last is that of the primitive itself, which others must not
// part: an atomic operation is a load and a store here. An apply function is one step, too.
void Turns::before_raw(Executor &e, const void *address, size_t bytes) {
  const auto *begin = static_cast<const std::byte *>(address);
  const auto *checked = static_cast<const std::byte *>(e.fine_.checked);
  if (e.fine_.applying || (checked <= begin && begin + bytes <= checked + e.fine_.bytes)) return;
  // Most raw accesses are to the stack of the thread, which nobody else sees.
  if (!e.part_->shared.contains(address, bytes) &&
      (!e.stream_ || e.stream_->memory.id_of(address) < 0))
    return;
  e.fine_.checked = nullptr;
  e.fine_.bytes = 0;
  let_others_run(e);
}

} // namespace assay::simt
