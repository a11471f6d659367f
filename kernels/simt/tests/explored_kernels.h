// SPDX-License-Identifier: Apache-2.0
// Small kernels that are wrong on some schedules alone, each with a right twin. `g` is global
// memory of 16 words, which are 0 at the start. The last four words are results, and the others may
// differ between schedules.
#pragma once

#include <functional>

#include "kernels/simt/tests/fixture.h"

namespace assay::simt::explored {

using enum AtomicOrder;

inline constexpr uint32_t kWords = 16, kResult = 12;

inline uint32_t atomic_load(const uint32_t *p, AtomicOrder order = kAcquire,
                            Site site = Site::here()) {
  atomic_access(p, 4, AtomicKind::kLoad, order, Scope::kGpu, site);
  return *p;
}
inline void atomic_store(uint32_t *p, uint32_t value, AtomicOrder order = kRelease,
                         Site site = Site::here()) {
  atomic_access(p, 4, AtomicKind::kStore, order, Scope::kGpu, site);
  *p = value;
}
inline uint32_t atomic_add(uint32_t *p, uint32_t value = 1, AtomicOrder order = kAcqRel,
                           Site site = Site::here()) {
  atomic_access(p, 4, AtomicKind::kReadModifyWrite, order, Scope::kGpu, site);
  const uint32_t old = *p;
  *p = old + value;
  return old;
}
inline void arrive(uint32_t *b, Site site = Site::here()) { mbarrier_arrive(b, site); }
inline void wait(uint32_t *b, uint32_t parity, Site site = Site::here()) {
  mbarrier_wait(b, parity, site);
}
inline uint32_t block_index() { return thread_view.block_idx[0]; }
// The first mbarriers of the block, of `counts` arrivals each. All threads meet behind them.
inline uint32_t *barriers(std::initializer_list<uint32_t> counts) {
  uint32_t *words = shared_words(64);
  uint32_t *next = words;
  if (me() == 0)
    for (const uint32_t count : counts) {
      mbarrier_init(next, count, Site::here());
      next += 2;
    }
  sync_block();
  return words;
}

// A thread sleeps where it found nothing to do, and is woken where it was seen asleep. It may fall
// asleep behind the look at it.
inline void lost_wakeup(uint32_t *g, bool right) {
  uint32_t *b = barriers({1});
  uint32_t *ready = g, *asleep = g + 1;
  if (me() == 0) {
    if (right) {
      if (atomic_add(asleep) == 0) wait(b, 0);
    } else if (atomic_load(ready) == 0) {
      atomic_store(asleep, 1);
      wait(b, 0);
    }
  } else {
    if (!right) atomic_store(ready, 1);
    if (right ? atomic_add(asleep) == 1 : atomic_load(asleep) == 1) arrive(b);
  }
}

// Thread 2 wakes thread 1 where it came last. Thread 1 sleeps where it came second.
inline void deadlock_in_one_order(uint32_t *g, bool right) {
  uint32_t *b = barriers({1});
  const uint32_t mine = atomic_add(g);
  if (me() == 1 && (right || mine == 1)) wait(b, 0);
  if (me() == 2 && (right || mine == 2)) arrive(b);
}

// Two consumers wait for each phase of `full`. One of the two alone says that it has gone on, so
// that the other may miss a phase and see the parity of the next but one.
inline void phase_confusion(uint32_t *, bool right) {
  uint32_t *full = barriers({1, right ? 2u : 1u}), *empty = full + 2;
  for (uint32_t round = 0; round < 3; ++round) {
    if (me() == 0) {
      arrive(full);
      wait(empty, round % 2);
    } else {
      wait(full, round % 2);
      if (right || me() == 1) arrive(empty);
    }
  }
}

// The reader takes the data where the flag rose between two looks at it. Both are relaxed.
inline void flag_read_before_written(uint32_t *g, bool right) {
  uint32_t *data = g, *flag = g + 1;
  const AtomicOrder order = right ? kAcquire : kRelaxed;
  if (me() == 0) {
    if (atomic_load(flag, order) == 0 && atomic_load(flag, order) == 1)
      g[2] = load(Space::kGlobal, data);
  } else {
    store(Space::kGlobal, data, 7);
    atomic_store(flag, 1, right ? kRelease : kRelaxed);
  }
}

// A counter that is read and written, in place of an addition.
inline void lost_update(uint32_t *g, bool right) {
  if (right)
    atomic_add(g + kResult);
  else
    atomic_store(g + kResult, atomic_load(g + kResult) + 1);
}

// Who comes second writes the result.
inline void result_of_arrival_order(uint32_t *g, bool right) {
  const uint32_t mine = atomic_add(g);
  if (right) atomic_add(g + kResult, me());
  if (!right && mine == 1) store(Space::kGlobal, g + kResult, me());
}

// Either thread initialises an mbarrier that it finds not initialised.
inline void initialised_by_either(uint32_t *g, bool right) {
  uint32_t *b = shared_words(4);
  const bool first = right ? atomic_add(g) == 0 : atomic_load(g) == 0;
  if (first) {
    mbarrier_init(b, 1, Site::here());
    atomic_store(g, 2);
    arrive(b);
  }
}

// A ring of two slots. Each of the two consumers releases a slot, and one of the two releases is
// enough to fill it again.
inline void ring(uint32_t slots, uint32_t rounds, uint32_t consumers, uint32_t releases) {
  uint32_t *words = shared_words(64), *full = words, *empty = words + 8, *data = words + 16;
  if (me() == 0)
    for (uint32_t s = 0; s < slots; ++s) {
      mbarrier_init(full + 2 * s, 1, Site::here());
      mbarrier_init(empty + 2 * s, releases, Site::here());
    }
  sync_block();
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t s = round % slots, parity = round / slots % 2;
    if (me() == 0) {
      wait(empty + 2 * s, parity ^ 1);
      store(Space::kShared, data + s, round);
      arrive(full + 2 * s);
    } else if (me() <= consumers) {
      wait(full + 2 * s, parity);
      load(Space::kShared, data + s);
      arrive(empty + 2 * s);
    }
  }
}
inline void ring_reuse(uint32_t *, bool right) { ring(2, 4, 2, right ? 2 : 1); }

// Thread 1 arrives for the next phase, and does not know that the bytes of this one have come.
inline void arrival_before_bytes(uint32_t *g, bool right) {
  uint32_t *b = barriers({1});
  if (me() == 0) {
    fence_mbarrier_init(Site::here());
    mbarrier_expect(b, 16, Site::here());
    const auto fill = [&](std::vector<BulkPiece> &pieces) {
      pieces.push_back({.offset = 0, .bytes = 16, .source = g + 8});
    };
    bulk_copy(b + 16, 16, 16, b, fill, Site::here());
    arrive(b);
    wait(b, 0);
  }
  if (right) sync_block();
  if (me() == 1) arrive(b);
}

// Block 2 expects to come last.
inline void last_block(uint32_t *g, bool right) {
  store(Space::kGlobal, g + 4 + block_index(), block_index());
  const uint32_t mine = atomic_add(g);
  if (mine != 2 || (!right && block_index() != 2)) return;
  for (uint32_t i = 0; i < 3; ++i)
    g[kResult] += load(Space::kGlobal, g + 4 + i);
}

struct Kernel {
  const char *name;
  uint32_t threads, blocks;
  std::function<void(uint32_t *g, bool right)> body;
};
inline const Kernel kKernels[] = {
    {"lost_wakeup", 2, 1, lost_wakeup},
    {"deadlock_in_one_order", 3, 1, deadlock_in_one_order},
    {"phase_confusion", 3, 1, phase_confusion},
    {"flag_read_before_written", 2, 1, flag_read_before_written},
    {"lost_update", 2, 1, lost_update},
    {"result_of_arrival_order", 3, 1, result_of_arrival_order},
    {"initialised_by_either", 2, 1, initialised_by_either},
    {"ring_reuse", 3, 1, ring_reuse},
    {"arrival_before_bytes", 2, 1, arrival_before_bytes},
    {"last_block", 1, 3, last_block},
};

} // namespace assay::simt::explored
