// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/block_clocks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace assay::simt {

void BlockClocks::begin_block(uint32_t threads, uint32_t stamp) {
  threads_ = width_ = threads;
  first_copier_ = (threads + kLanes - 1) / kLanes * kLanes;
  copiers_.clear();
  epoch_.resize(threads);
  known_.resize(threads);
  met_.resize((threads + kLanes - 1) / kLanes);
  all_meet(stamp);
}

uint32_t BlockClocks::known(uint32_t thread, uint32_t other) const {
  if (other >= threads_) return known_of_copier(thread, other);
  if (thread == other) return epoch_[thread];
  uint32_t stamp = base_;
  if (thread / kLanes == other / kLanes) stamp = std::max(stamp, met_[thread / kLanes]);
  return known_[thread] != 0 ? std::max(stamp, entry(known_[thread], other)) : stamp;
}

uint32_t BlockClocks::present(uint32_t warp) const {
  const uint32_t left = threads_ - warp * kLanes;
  return left >= kLanes ? ~0u : (1u << left) - 1;
}

// ---- clocks ----

BlockClocks::Id BlockClocks::make() {
  Id id;
  if (!unused_.empty()) {
    id = unused_.back();
    unused_.pop_back();
  } else {
    id = static_cast<Id>(references_.size());
    references_.push_back(0);
    entries_.resize(references_.size() * width_);
  }
  std::fill_n(entries(id), threads_, base_);
  for (uint32_t i = threads_; i < width_; ++i) {
    const uint32_t copier = i - first_copier_;
    entries(id)[i] = i >= first_copier_ && copier < copiers_.size() ? copiers_[copier].known : 0;
  }
  return id;
}

BlockClocks::Id BlockClocks::copy(Id other) {
  const Id id = make();
  if (other != 0) std::copy_n(entries(other), width_, entries(id));
  return id;
}

void BlockClocks::drop(Id id) {
  if (id != 0 && --references_[id] == 0) unused_.push_back(id);
}

void BlockClocks::set(Id &slot, Id id) {
  if (slot == id) return;
  if (id != 0) ++references_[id];
  drop(slot);
  slot = id;
}

void BlockClocks::join_into(Id to, Id from) {
  if (from == 0 || from == to) return;
  uint32_t *a = entries(to);
  const uint32_t *b = entries(from);
  for (uint32_t i = 0; i < width_; ++i)
    a[i] = std::max(a[i], b[i]);
}

BlockClocks::Id BlockClocks::joined(Id a, Id b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  // The lanes of a warp acquire the same one after the other.
  if (memo_a_ != a || memo_b_ != b) {
    const Id id = copy(a);
    join_into(id, b);
    set(memo_joined_, id);
    set(memo_a_, a);
    set(memo_b_, b);
  }
  return memo_joined_;
}

void BlockClocks::acquire(uint32_t thread, Id id) {
  set(known_[thread], joined(known_[thread], id));
}

// What `thread` releases at `stamp`: what it did, and what it knows.
void BlockClocks::add_knowledge(Id to, uint32_t thread, uint32_t stamp) {
  const uint32_t warp = thread / kLanes, met = met_[warp];
  uint32_t *a = entries(to);
  if (met > base_)
    for (uint32_t t = warp * kLanes; t < std::min(threads_, (warp + 1) * kLanes); ++t)
      a[t] = std::max(a[t], met);
  a[thread] = stamp;
}

// ---- meetings ----

void BlockClocks::all_meet(uint32_t stamp) {
  for (uint32_t i = 0; i < copiers_.size(); ++i)
    for (const Id id : known_)
      if (id != 0) copiers_[i].known = std::max(copiers_[i].known, entry(id, first_copier_ + i));
  base_ = stamp;
  std::fill(epoch_.begin(), epoch_.end(), stamp + 1);
  std::fill(known_.begin(), known_.end(), 0);
  std::fill(met_.begin(), met_.end(), stamp);
  phases_.clear();
  entries_.resize(width_);
  references_.assign(1, 0);
  unused_.clear();
  memo_a_ = memo_b_ = memo_joined_ = 0;
}

void BlockClocks::warps_meet(uint32_t warps, uint32_t stamp) {
  const Id met = make();
  Id before = 0;
  for (uint32_t left = warps; left != 0; left &= left - 1) {
    const uint32_t warp = static_cast<uint32_t>(std::countr_zero(left));
    for (uint32_t t = warp * kLanes; t < std::min(threads_, (warp + 1) * kLanes); ++t) {
      if (known_[t] != before) join_into(met, before = known_[t]);
      entries(met)[t] = stamp;
      epoch_[t] = stamp + 1;
    }
    met_[warp] = stamp;
  }
  for (uint32_t left = warps; left != 0; left &= left - 1) {
    const uint32_t warp = static_cast<uint32_t>(std::countr_zero(left));
    for (uint32_t t = warp * kLanes; t < std::min(threads_, (warp + 1) * kLanes); ++t)
      set(known_[t], met);
  }
}

void BlockClocks::lanes_meet(uint32_t warp, uint32_t lanes, uint32_t stamp) {
  const uint32_t first = warp * kLanes;
  const bool whole = lanes == present(warp);
  if (whole) {
    const uint32_t end = std::min(threads_, first + kLanes);
    met_[warp] = stamp;
    std::fill(epoch_.begin() + first, epoch_.begin() + end, stamp + 1);
    if (std::count(known_.begin() + first, known_.begin() + end, known_[first]) == end - first)
      return;
  }
  const Id met = make();
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const uint32_t t = first + static_cast<uint32_t>(std::countr_zero(left));
    join_into(met, known_[t]);
    if (whole) continue;
    add_knowledge(met, t, stamp);
    advance(t, stamp);
  }
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    set(known_[first + static_cast<uint32_t>(std::countr_zero(left))], met);
}

// ---- mbarriers ----

void BlockClocks::arrived(uint32_t thread, uint32_t mbarrier, uint32_t stamp) {
  if (phases_.size() <= mbarrier) phases_.resize(mbarrier + 1);
  Phases &phases = phases_[mbarrier];
  if (phases.arrived == 0 || references_[phases.arrived] > 1)
    set(phases.arrived, copy(phases.arrived));
  if (phases.joined != known_[thread]) {
    join_into(phases.arrived, known_[thread]);
    set(phases.joined, known_[thread]);
  }
  add_knowledge(phases.arrived, thread, stamp);
  advance(thread, stamp);
}

void BlockClocks::completed(uint32_t mbarrier) {
  set(phases_[mbarrier].completed, phases_[mbarrier].arrived);
}

// ---- copiers ----

void BlockClocks::widen(uint32_t width) {
  std::vector<uint32_t> wider(references_.size() * width);
  for (size_t id = 0; id < references_.size(); ++id)
    std::copy_n(&entries_[id * width_], width_, &wider[id * width]);
  entries_ = std::move(wider);
  width_ = width;
}

uint32_t BlockClocks::copier(uint32_t mbarrier) {
  if (copiers_.size() <= mbarrier) {
    copiers_.resize(mbarrier + 1);
    if (first_copier_ + mbarrier >= width_) widen(first_copier_ + (mbarrier / kLanes + 1) * kLanes);
  }
  return first_copier_ + mbarrier;
}

uint32_t BlockClocks::known_of_copier(uint32_t thread, uint32_t copier) const {
  if (copier < first_copier_) return 0; // nobody
  const uint32_t all = copiers_[copier - first_copier_].known;
  return known_[thread] != 0 ? std::max(all, entry(known_[thread], copier)) : all;
}

// Who passes a phase knows the copies up to the latest one that has ended.
void BlockClocks::add_copier(uint32_t mbarrier) {
  const Copier &copier = copiers_[mbarrier];
  if (copier.done == copier.known) return;
  if (phases_.size() <= mbarrier) phases_.resize(mbarrier + 1);
  Id &completed = phases_[mbarrier].completed;
  const uint32_t index = first_copier_ + mbarrier;
  if (completed != 0 && entry(completed, index) == copier.done) return;
  const Id id = copy(completed);
  entries(id)[index] = copier.done;
  set(completed, id);
}

} // namespace assay::simt
