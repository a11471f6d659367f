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

thread_local Explorer *active = nullptr;
thread_local const Stream *explored_stream = nullptr;

} // namespace

// ---- choices ----

bool Explorer::contains(const Who &set, uint32_t who) {
  return std::find(set.begin(), set.end(), who) != set.end();
}

void Explorer::add(Who &set, uint32_t who) {
  if (!contains(set, who)) set.push_back(who);
}

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

uint32_t Explorer::choose_block(const Who &left) {
  return left.size() == 1 ? left[0] : take(left, true);
}

uint32_t Explorer::choose(const Who &ready) {
  explored_.too_long |= depth_ == kMostChoices;
  return depth_ == kMostChoices ? kNobody : take(ready, false);
}

uint32_t Explorer::take(Who ready, bool of_blocks) {
  choices_ += ready.size() > 1;
  if (depth_ < nodes_.size()) {
    const Node &before = nodes_[depth_];
    differs_ |= ready.size() != before.ready.size() || !contains(ready, before.chosen);
    if (differs_) return latest_ = ready.front();
    ++depth_;
    return latest_ = before.chosen;
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
  if (hazards != 0) text += ", of which a hazard ended " + std::to_string(hazards);
  if (left != 0)
    text += std::string(stopped ? "" : "; the bound was reached") + "; at least " +
            std::to_string(left) + " more are left";
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
  explored.stopped = !goes_on;
  explored.complete = !more && goes_on && explored.hazards == 0;
  return explored;
}

} // namespace assay::simt
