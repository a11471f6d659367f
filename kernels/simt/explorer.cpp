// SPDX-License-Identifier: Apache-2.0
// The search: which choices are tried, and which need not be.
//
// Between two operations a thread does what nobody else can notice. Its plain accesses are ordered
// by the operations, or an `unordered-access` is reported in whatever order they run. Collectives
// and block barriers wait for all whom they name, so that the order in which those come shows
// nowhere. The order of operations therefore decides a run.
//
// Two operations are dependent if their order can matter: on one word, of which one writes it; on
// one mbarrier, unless neither notices which comes first. Two orders that differ in neighbours that
// are not dependent end in the same state. Dynamic partial-order reduction (Flanagan and Godefroid,
// 2005) runs one of each such class: where an operation depends on an earlier one that nothing
// orders before it, the choice in front of the earlier one is tried the other way. Sleep sets
// (Godefroid, 1996) leave out what would repeat an earlier run. A test compares the outcomes with
// those of all orders.
#include "kernels/simt/explorer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/simt/stream.h"

namespace assay::simt {
namespace {

using Kind = Operation::Kind;

thread_local Explorer *active = nullptr;
thread_local const Stream *explored_stream = nullptr;

bool contains(const std::vector<uint32_t> &set, uint32_t member) {
  return std::find(set.begin(), set.end(), member) != set.end();
}
void add(std::vector<uint32_t> &set, uint32_t member) {
  if (!contains(set, member)) set.push_back(member);
}

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

// ---- what can matter ----

// Arrivals in one phase may change places: whichever comes last ends it. A wait notices the end of
// a phase alone.
bool Explorer::dependent(const Event &earlier, const Event &later) {
  const Operation &a = earlier.operation, &b = later.operation;
  if (!touch(a, b)) return false;
  if (of_memory(a)) return true;
  if (a.kind == Kind::kWait && b.kind == Kind::kWait) return false;
  if (a.kind == Kind::kWait) return later.completes;
  if (b.kind == Kind::kWait) return earlier.completes || a.object == nullptr;
  return a.object == nullptr || b.object == nullptr || earlier.phase != later.phase ||
         a.kind != b.kind; // an arrival in front of a change may end the phase
}

// Whether the earlier one made the later one possible, so that they cannot change places: a wait
// needs the end of a phase of its parity.
bool Explorer::exclusive(const Event &earlier, const Event &later) {
  return later.operation.kind == Kind::kWait && earlier.completes &&
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
  return !event.completes && pending.kind != Kind::kChange;
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

void Explorer::meet(const std::vector<uint32_t> &threads) {
  if (!reduces_) return;
  Clock all;
  for (const uint32_t thread : threads)
    join(all, clocks_[thread]);
  for (const uint32_t thread : threads)
    clocks_[thread] = all;
}

// ---- choices ----

void Explorer::begin_launch() {
  events_.clear();
  block_begin_ = 0;
}

void Explorer::begin_block(uint32_t threads) {
  block_begin_ = events_.size();
  announced_.clear();
  clocks_.assign(threads, {});
  phases_.clear();
  sleeping_.clear();
}

void Explorer::announce(uint32_t who, const Operation &operation, uint32_t issuer) {
  announced_[who] = operation;
  if (who >= clocks_.size()) clocks_.resize(who + 1);
  if (who != issuer) clocks_[who] = Clock(clocks_[issuer]);
}

uint32_t Explorer::choose_block(const std::vector<uint32_t> &left) {
  return left.size() == 1 ? left[0] : take(left, true);
}

uint32_t Explorer::choose(const std::vector<uint32_t> &ready) {
  return depth_ == kMostChoices ? kNobody : take(ready, false);
}

uint32_t Explorer::take(std::vector<uint32_t> ready, bool of_blocks) {
  choices_ += ready.size() > 1;
  if (depth_ < nodes_.size()) {
    differs_ |= !contains(ready, nodes_[depth_].chosen);
    return latest_ = differs_ ? ready.front() : nodes_[depth_++].chosen;
  }
  Node node;
  if (!of_blocks) node.asleep = sleeping_;
  // It goes round, so that who spins lets others run.
  const auto behind = [&](uint32_t who) { return who > latest_; };
  std::stable_partition(ready.begin(), ready.end(), behind);
  const auto awake = std::find_if(ready.begin(), ready.end(),
                                  [&](uint32_t who) { return !contains(node.asleep, who); });
  repeated_ |= awake == ready.end();
  if (repeated_) return latest_ = ready.front();
  node.chosen = *awake;
  node.of_blocks = of_blocks;
  for (const auto &[who, operation] : announced_)
    if (!of_blocks && !contains(ready, who)) node.waiting.push_back(who);
  node.ready = std::move(ready);
  if (!reduces_) node.to_try = node.ready;
  nodes_.push_back(std::move(node));
  ++depth_;
  return latest_ = nodes_.back().chosen;
}

// ---- operations ----

void Explorer::perform(uint32_t who, bool completes) {
  const auto announced = announced_.find(who);
  Event event{who, announced->second, 0, completes, depth_ - 1, {}};
  announced_.erase(announced);
  if (!reduces_ || repeated_) return;
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
  const std::vector<uint32_t> first = first_without(earlier, event);
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
std::vector<uint32_t> Explorer::first_without(size_t earlier, const Event &event) const {
  std::vector<uint32_t> first, seen;
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
  if (event.completes) {
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

// ---- runs ----

void Explorer::begin_run() {
  depth_ = 0;
  choices_ = 0;
  latest_ = 0;
  repeated_ = false;
}

// Goes back to the last choice that has another alternative. Returns false where none has.
bool Explorer::next_run() {
  explored_.choices = std::max(explored_.choices, choices_);
  ++(repeated_ ? explored_.repeated : explored_.runs);
  while (!nodes_.empty()) {
    Node &node = nodes_.back();
    add(node.tried, node.chosen);
    for (const uint32_t who : node.to_try)
      if (!contains(node.tried, who) && !contains(node.asleep, who)) {
        node.chosen = who;
        return true;
      }
    nodes_.pop_back();
  }
  return false;
}

uint64_t Explorer::alternatives() const {
  uint64_t count = 0;
  for (const Node &node : nodes_)
    for (const uint32_t who : node.to_try)
      count += !contains(node.tried, who) && !contains(node.asleep, who) &&
               (who != node.chosen || &node == &nodes_.back());
  return count;
}

std::string Explored::text() const {
  const std::string shape = " schedules of up to " + std::to_string(choices) + " choices";
  if (complete) return "all " + std::to_string(runs) + shape + " were run";
  std::string text = std::to_string(runs) + shape + " were run";
  if (left != 0) text += ", and at least " + std::to_string(left) + " more are left";
  if (hazards != 0) text += "; " + std::to_string(hazards) + " ended at a hazard";
  return text;
}

Explorer *Explorer::of(const Stream *stream) {
  return stream != nullptr && stream == explored_stream ? active : nullptr;
}

Explored explore(Stream &stream, uint64_t bound, FunctionRef<bool()> run, Reduction reduction) {
  if (active) throw std::logic_error("assay::simt: explore inside explore");
  struct Leave {
    ~Leave() { active = nullptr, explored_stream = nullptr; }
  } leave;
  Explorer explorer(reduction);
  active = &explorer;
  explored_stream = &stream;
  Explored &explored = explorer.explored_;
  bool more = true, goes_on = true;
  while (more && goes_on && explored.runs + explored.repeated < bound) {
    explorer.begin_run();
    goes_on = run();
    if (explorer.differs_ || explorer.depth_ < explorer.nodes_.size())
      throw std::logic_error("assay::simt: a run does not repeat what the run before it did");
    more = explorer.next_run();
  }
  explored.left = more ? explorer.alternatives() : 0;
  explored.complete = !more && goes_on && explored.hazards == 0;
  return explored;
}

} // namespace assay::simt
