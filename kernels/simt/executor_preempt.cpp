// SPDX-License-Identifier: Apache-2.0
// Schedules that let others run in front of any access, checked or raw.
#include "kernels/simt/executor.h"

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

uint32_t Executor::distance_of(const Schedule &schedule) {
  if (schedule.order != Order::kSeeded) return 0;
  if (schedule.distance != 0 || !kInstrumented) return schedule.distance;
  return kDistances[ScheduleRandom(~schedule.seed).below(4)];
}

// Any ready thread is as likely as another one: ReadySet::take() hardly ever takes some of few.
void Executor::preempt_uniformly() {
  if (until_hold_ != 0) return maybe_preempt(distance_);
  if (random_.below(distance_) != 0) return;
  ready_.insert(running_);
  const uint32_t next = ready_.take_uniformly(random_);
  if (next != running_) switch_to(next);
}

void Executor::preempt_finely(const void *address, size_t bytes) {
  preempt_uniformly();
  checked_ = address;
  checked_bytes_ = bytes;
}

// A raw access to what was checked last is that of the primitive itself, which others must not
// part: an atomic operation is a load and a store here. An apply function is one step, too.
void Executor::preempt_before_raw(const void *address, size_t bytes) {
  const auto *begin = static_cast<const std::byte *>(address);
  const auto *checked = static_cast<const std::byte *>(checked_);
  if (applying_ || (checked <= begin && begin + bytes <= checked + checked_bytes_)) return;
  // Most raw accesses are to the stack of the thread, which nobody else sees.
  if (!part_->shared.contains(address, bytes) && (!stream_ || stream_->memory.id_of(address) < 0))
    return;
  checked_ = nullptr;
  checked_bytes_ = 0;
  preempt_uniformly();
}

} // namespace assay::simt
