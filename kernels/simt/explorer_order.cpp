// SPDX-License-Identifier: Apache-2.0
// What can matter: which operations are dependent, what is ordered before an operation, and which
// choices it makes worth a try.
#include <algorithm>
#include <utility>

#include "kernels/simt/explorer.h"

namespace assay::simt {
namespace {

using Kind = Operation::Kind;

bool of_memory(const Operation &operation) {
  return operation.kind == Kind::kRead || operation.kind == Kind::kWrite;
}

bool touch(const Operation &a, const Operation &b) {
  if (of_memory(a) != of_memory(b)) return false;
  if (!of_memory(a))
    return ((a.kind == Kind::kMeet) == (b.kind == Kind::kMeet)) &&
           (a.object == b.object || a.object == nullptr || b.object == nullptr);
  const auto *p = static_cast<const std::byte *>(a.object);
  const auto *q = static_cast<const std::byte *>(b.object);
  return p < q + b.bytes && q < p + a.bytes && (a.kind == Kind::kWrite || b.kind == Kind::kWrite);
}

} // namespace

// ---- dependence ----

// Arrivals in one phase may change places: whichever comes last ends it. A wait notices the end of
// a phase alone.
bool Explorer::dependent(const Event &earlier, const Event &later) {
  const Operation &a = earlier.operation, &b = later.operation;
  if (!touch(a, b)) return false;
  if (of_memory(a)) return true;
  if (a.kind == Kind::kWait && b.kind == Kind::kWait) return false;
  if (a.kind == Kind::kWait) return later.effect == Effect::kEnds;
  if (b.kind == Kind::kWait) return earlier.effect == Effect::kEnds || a.object == nullptr;
  if (a.object == nullptr || b.object == nullptr || earlier.phase != later.phase) return true;
  // An arrival of all in front of a change may end the phase.
  const Event &arrival = a.kind == Kind::kChange ? later : earlier;
  return a.kind != b.kind && arrival.effect != Effect::kNone;
}

// Whether the earlier one made the later one possible, so that they cannot change places: a wait
// needs the end of a phase of its parity.
bool Explorer::exclusive(const Event &earlier, const Event &later) {
  return later.operation.kind == Kind::kWait && earlier.effect == Effect::kEnds &&
         (earlier.phase & 1) == later.operation.parity;
}

// The same of an operation that has not been performed, so that more may be dependent.
bool Explorer::independent(const Operation &pending, const Event &event) {
  const Operation &done = event.operation;
  if (!touch(pending, done)) return true;
  if (of_memory(done)) return false;
  if (pending.object == nullptr || done.object == nullptr) return false;
  const bool waits = pending.kind == Kind::kWait;
  if (done.kind == Kind::kWait || done.kind == Kind::kChange)
    return waits || (done.kind == Kind::kWait && pending.kind == Kind::kChange);
  return event.effect == Effect::kNone ||
         (event.effect == Effect::kAllArrived && pending.kind != Kind::kChange);
}

// ---- clocks ----

bool Explorer::knows(const Clock &clock, const Event &event, size_t index) {
  return event.who < clock.size() && clock[event.who] > index;
}

void Explorer::join(Clock &into, const Clock &from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

void Explorer::meet(const Who &threads) {
  if (!reduces_) return;
  Clock all;
  for (const uint32_t thread : threads)
    join(all, clocks_[thread]);
  for (const uint32_t thread : threads)
    clocks_[thread] = all;
}

// ---- operations ----

void Explorer::perform(uint32_t who, Effect effect) {
  const auto announced = announced_.find(who);
  Event event{who, announced->second, 0, effect, depth_ - 1, {}};
  announced_.erase(announced);
  if (!reduces_ || repeated_ || differs_) return;
  if (!of_memory(event.operation)) event.phase = phases_[event.operation.object].number;
  order(event);
  count_phase(event);
  fall_asleep(event);
  clocks_[who] = event.clock;
  events_.push_back(std::move(event));
}

// Finds earlier operations on which this one depends. Of those that are not ordered before it, the
// latest are tried behind it: in front of others stand those.
void Explorer::order(Event &event) {
  const Clock before = clocks_[event.who];
  event.clock = before;
  if (event.operation.kind == Kind::kWait)
    join(event.clock, phases_[event.operation.object].complete);
  std::vector<size_t> reversed;
  for (size_t i = events_.size(); i-- > block_begin_;) {
    const Event &earlier = events_[i];
    if (!dependent(earlier, event)) continue;
    join(event.clock, earlier.clock);
    if (knows(before, earlier, i) || exclusive(earlier, event)) continue;
    const bool indirect = std::any_of(reversed.begin(), reversed.end(), [&](size_t later) {
      return knows(events_[later].clock, earlier, i);
    });
    if (!indirect && order_before(i, event)) reversed.push_back(i);
  }
  reverse_blocks(event);
  if (event.clock.size() <= event.who) event.clock.resize(event.who + 1);
  event.clock[event.who] = static_cast<uint32_t>(events_.size() + 1);
}

// Adds a try of a run in which `event` comes before an earlier one. Returns false where it cannot.
bool Explorer::order_before(size_t earlier, const Event &event) {
  Node &node = nodes_[events_[earlier].node];
  const Who first = first_without(earlier, event);
  if (first.size() == 1 && first[0] == event.who && contains(node.waiting, event.who))
    return false; // it was not possible there
  for (const uint32_t who : first)
    if (who == node.chosen || contains(node.to_try, who)) return true;
  for (const uint32_t who : first)
    if (contains(node.ready, who)) {
      add(node.to_try, who);
      return true;
    }
  for (const uint32_t who : node.ready)
    add(node.to_try, who);
  return true;
}

// Who can begin in place of an earlier operation, so that `event` comes before it: of what follows
// that operation and is not ordered behind it, `event` last, whose operations need none of the
// others.
Explorer::Who Explorer::first_without(size_t earlier, const Event &event) const {
  Who first, seen;
  std::vector<size_t> free;
  for (size_t i = earlier + 1; i <= events_.size(); ++i) {
    const Event &next = i == events_.size() ? event : events_[i];
    if (&next != &event && knows(next.clock, events_[earlier], earlier)) continue;
    const bool needs = std::any_of(free.begin(), free.end(), [&](size_t other) {
      return knows(next.clock, events_[other], other);
    });
    if (!needs && !contains(seen, next.who)) first.push_back(next.who);
    seen.push_back(next.who);
    free.push_back(i);
  }
  return first;
}

// Blocks run as wholes. Where one depends on an earlier one, all their orders are tried.
void Explorer::reverse_blocks(const Event &event) {
  const auto end = events_.begin() + static_cast<ptrdiff_t>(block_begin_);
  if (!of_memory(event.operation) ||
      std::none_of(events_.begin(), end, [&](const Event &e) { return dependent(e, event); }))
    return;
  for (size_t i = 0; i < depth_; ++i)
    if (nodes_[i].of_blocks) nodes_[i].to_try = nodes_[i].ready;
}

// Who has passed a phase comes behind all who arrived in it.
void Explorer::count_phase(const Event &event) {
  if (of_memory(event.operation)) return;
  Phases &phases = phases_[event.operation.object];
  if (event.operation.kind == Kind::kArrive) join(phases.arrived, event.clock);
  if (event.effect == Effect::kEnds) {
    ++phases.number;
    phases.complete = phases.arrived;
  }
}

// What was tried in place of this operation, and does not depend on it, would end in a state that
// was seen.
void Explorer::fall_asleep(const Event &event) {
  const Node &node = nodes_[event.node];
  sleeping_.clear();
  for (const auto &set : {node.asleep, node.tried})
    for (const uint32_t who : set) {
      const auto pending = announced_.find(who);
      if (pending != announced_.end() && independent(pending->second, event)) add(sleeping_, who);
    }
}

} // namespace assay::simt
