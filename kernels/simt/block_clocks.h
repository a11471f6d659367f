// SPDX-License-Identifier: Apache-2.0
// What the threads of a block know of one another: vector clocks. Lanes that met at a barrier of
// their warp share a number, threads that acquired the same share a clock, and a block barrier
// makes all of it one number.
//
// The bulk copies that an mbarrier counts are one more participant, its copier. Nobody knows what
// it did by a number: a block barrier makes known to all what some knew, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::simt {

class BlockClocks {
public:
  using Id = uint32_t; // of a clock; 0: knows what the base has

  void begin_block(uint32_t threads, uint32_t stamp);

  // The stamp of what a thread does now. It rises where the thread releases something.
  uint32_t epoch(uint32_t thread) const { return epoch_[thread]; }
  // Everybody knows what was done up to here.
  uint32_t base() const { return base_; }
  // Whether what `other` did at `stamp` is ordered before what `thread` does now.
  bool knows(uint32_t thread, uint32_t other, uint32_t stamp) const {
    if (other >= threads_) [[unlikely]]
      return stamp <= known_of_copier(thread, other);
    if (stamp <= base_ || thread == other) return true;
    if (thread / kLanes == other / kLanes && stamp <= met_[thread / kLanes]) return true;
    return known_[thread] != 0 && stamp <= entry(known_[thread], other);
  }
  // The last stamp of `other` that `thread` knows.
  uint32_t known(uint32_t thread, uint32_t other) const;
  // Whether `thread` knows more of others than the base has.
  bool knows_more(uint32_t thread) const {
    return known_[thread] != 0 || met_[thread / kLanes] > base_ || !copiers_.empty();
  }
  // Threads, and then copiers. known() takes either as `other`.
  uint32_t participants() const {
    return copiers_.empty() ? threads_ : first_copier_ + static_cast<uint32_t>(copiers_.size());
  }

  // Meetings and releases at `stamp`: what a participant did before is ordered before what any of
  // them does afterwards.
  void all_meet(uint32_t stamp);
  void warps_meet(uint32_t warps, uint32_t stamp);
  void lanes_meet(uint32_t warp, uint32_t lanes, uint32_t stamp);
  // What `thread` does from here on is not released by what it released so far.
  void advance(uint32_t thread, uint32_t stamp) { epoch_[thread] = stamp + 1; }

  // mbarriers: who has passed a phase knows what everybody did who arrived in it or before.
  void arrived(uint32_t thread, uint32_t mbarrier, uint32_t stamp);
  void completed(uint32_t mbarrier);
  void passed(uint32_t thread, uint32_t mbarrier) {
    if (mbarrier < copiers_.size()) add_copier(mbarrier);
    if (mbarrier < phases_.size()) acquire(thread, phases_[mbarrier].completed);
  }
  // The copier of an mbarrier, as a participant; and its copies of a phase that ends at `stamp`.
  // Returns the stamp of what they did.
  uint32_t copier(uint32_t mbarrier);
  uint32_t copied(uint32_t mbarrier, uint32_t stamp) {
    return copiers_[mbarrier].done = stamp | kOfCopier;
  }

private:
  static constexpr uint32_t kLanes = 32;
  static constexpr uint32_t kOfCopier = 1u << 31; // in the stamps of copiers: above every base
  struct Copier {
    uint32_t done = 0;  // up to the latest phase
    uint32_t known = 0; // to all
  };
  struct Phases {
    Id arrived = 0;   // of those who have arrived so far
    Id completed = 0; // the same at the end of the latest phase
    Id joined = 0;    // joined to `arrived` last
  };
  uint32_t present(uint32_t warp) const; // its lanes, one bit each
  uint32_t *entries(Id id) { return &entries_[size_t{id} * width_]; }
  uint32_t entry(Id id, uint32_t thread) const { return entries_[size_t{id} * width_ + thread]; }
  uint32_t known_of_copier(uint32_t thread, uint32_t copier) const;
  void add_copier(uint32_t mbarrier);
  void widen(uint32_t width);
  Id make();         // that knows the base
  Id copy(Id other); // of its own
  void join_into(Id to, Id from);
  Id joined(Id a, Id b);
  void acquire(uint32_t thread, Id id);
  void add_knowledge(Id to, uint32_t thread, uint32_t stamp);
  void set(Id &slot, Id id); // counts the reference
  void drop(Id id);

  uint32_t threads_ = 0, base_ = 0;
  uint32_t first_copier_ = 0, width_ = 0; // number of the first one; entries of a clock
  std::vector<Copier> copiers_;           // per mbarrier, up to the last one with copies
  std::vector<uint32_t> epoch_;           // per thread
  std::vector<Id> known_;                 // per thread
  std::vector<uint32_t> met_;             // per warp: up to here its lanes know one another
  std::vector<Phases> phases_;            // per mbarrier

  // Clocks never change while more than one slot has them.
  std::vector<uint32_t> entries_;    // width_ per clock
  std::vector<uint32_t> references_; // per clock
  std::vector<Id> unused_;
  Id memo_a_ = 0, memo_b_ = 0, memo_joined_ = 0; // the latest joined()
};

} // namespace assay::simt
