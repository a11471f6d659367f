// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/block_order.h"

#include <algorithm>
#include <bit>

namespace assay::simt {
namespace {

bool acquires(AtomicOrder order) {
  return order == AtomicOrder::kAcquire || order == AtomicOrder::kAcqRel;
}
bool releases(AtomicOrder order) {
  return order == AtomicOrder::kRelease || order == AtomicOrder::kAcqRel;
}
uintptr_t key(const void *address) { return reinterpret_cast<uintptr_t>(address); }

} // namespace

void BlockOrder::begin_launch() {
  stamp_ = 0;
  nodes_.assign(1, {});
  others_.clear();
  messages_.clear();
  visited_.assign(1, 0);
  search_ = 0;
  block_view_ = {};
  thread_view_ = {};
}

void BlockOrder::begin_block(uint32_t block, uint32_t threads) {
  block_ = block;
  threads_ = threads;
  ++block_serial_;
  if (states_.size() < threads) states_.resize(threads);
  root_ = 0;
  acquirers_.clear();
  log_.clear();
  base_ = stamp_++;
  quiet_ = true;
  ++version_;
}

// ---- meetings inside the block ----

void BlockOrder::all_meet() {
  for (const uint32_t thread : acquirers_) {
    root_ = join(root_, states_[thread].acquired.back().node);
    states_[thread].acquired.clear();
  }
  acquirers_.clear();
  log_.clear();
  base_ = stamp_++;
  quiet_ = true;
  ++version_;
}

void BlockOrder::log(const Event &event) {
  log_.push_back(event);
  ++stamp_;
  ++version_;
}

void BlockOrder::raise(uint32_t first, uint32_t lanes, uint32_t stamp) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t thread = first + static_cast<uint32_t>(std::countr_zero(lanes));
    known_[thread] = std::max(known_[thread], stamp);
  }
}

bool BlockOrder::any_knows(uint32_t first, uint32_t lanes, uint32_t stamp) const {
  for (; lanes != 0; lanes &= lanes - 1)
    if (known_[first + static_cast<uint32_t>(std::countr_zero(lanes))] >= stamp) return true;
  return false;
}

void BlockOrder::look_back_at(const Event &event, std::array<int32_t, 256> &phases) {
  switch (event.kind) {
  case Event::kLanesMeet:
    if (any_knows(event.who * kLanes, event.what, event.stamp))
      raise(event.who * kLanes, event.what, event.stamp);
    return;
  case Event::kWarpsMeet: {
    bool met = false;
    for (uint32_t left = event.what; left != 0 && !met; left &= left - 1)
      met = any_knows(static_cast<uint32_t>(std::countr_zero(left)) * kLanes, ~0u, event.stamp);
    for (uint32_t left = met ? event.what : 0; left != 0; left &= left - 1)
      raise(static_cast<uint32_t>(std::countr_zero(left)) * kLanes, ~0u, event.stamp);
    return;
  }
  case Event::kPassed:
    if (known_[event.who] >= event.stamp)
      phases[event.what] = std::max(phases[event.what], event.phase);
    return;
  case Event::kArrived:
    if (phases[event.what] >= event.phase)
      known_[event.who] = std::max(known_[event.who], event.stamp);
    return;
  }
}

// Fills known_ and knowledge_ for `thread`. Walking the log from its end finds what the thread
// knows of the others. Its knowledge is what those others had acquired up to there.
void BlockOrder::look_back(uint32_t thread) {
  if (looked_ == version_ && looking_ == thread) return;
  looked_ = version_;
  looking_ = thread;
  // known_ has whole warps. Threads past the end of the block keep base_: nobody learns from them.
  known_.assign((threads_ + kLanes - 1) / kLanes * kLanes, base_);
  known_[thread] = stamp_;
  std::array<int32_t, 256> phases; // per mbarrier the latest phase that is known to be passed
  phases.fill(-1);
  for (auto event = log_.rbegin(); event != log_.rend(); ++event)
    look_back_at(*event, phases);
  knowledge_ = root_;
  for (const uint32_t other : acquirers_) {
    const std::vector<Acquired> &acquired = states_[other].acquired;
    const auto later =
        std::upper_bound(acquired.begin(), acquired.end(), known_[other],
                         [](uint32_t stamp, const Acquired &a) { return stamp < a.stamp; });
    if (later != acquired.begin()) knowledge_ = join(knowledge_, (later - 1)->node);
  }
}

BlockOrder::NodeId BlockOrder::knowledge(uint32_t thread) {
  if (quiet_) return root_;
  look_back(thread);
  return knowledge_;
}

// ---- releases and acquires ----

BlockOrder::Thread &BlockOrder::state(uint32_t thread) {
  Thread &state = states_[thread];
  if (state.block_serial == block_serial_) return state;
  state.block_serial = block_serial_;
  state.fenced = state.read = {};
  state.acquired.clear();
  return state;
}

BlockOrder::NodeId BlockOrder::join(NodeId a, NodeId b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  Node node;
  node.left = a;
  node.right = b;
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

void BlockOrder::acquire(uint32_t thread, NodeId node) {
  if (node == 0) return;
  std::vector<Acquired> &acquired = state(thread).acquired;
  if (acquired.empty()) acquirers_.push_back(thread);
  acquired.push_back({stamp_, acquired.empty() ? node : join(acquired.back().node, node)});
  quiet_ = false;
  ++version_;
}

BlockOrder::NodeId BlockOrder::release(uint32_t thread) {
  Node node;
  node.block = block_;
  node.base = base_;
  node.thread = thread;
  node.own = stamp_;
  node.left = knowledge(thread);
  node.others_begin = node.others_end = static_cast<uint32_t>(others_.size());
  if (!log_.empty()) {
    for (uint32_t other = 0; other < threads_; ++other)
      if (other != thread && known_[other] > base_) others_.emplace_back(other, known_[other]);
    node.others_end = static_cast<uint32_t>(others_.size());
  }
  ++stamp_; // what the thread writes from here on is not released
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

void BlockOrder::fence(uint32_t thread, Scope scope) {
  Thread &self = state(thread);
  acquire(thread, self.read.local);
  self.read.local = 0;
  if (scope == Scope::kGpu) {
    acquire(thread, self.read.wide);
    self.read.wide = 0;
  }
  self.fenced.local = release(thread);
  if (scope == Scope::kGpu) self.fenced.wide = self.fenced.local;
}

void BlockOrder::atomic(uint32_t thread, const void *address, AtomicOrder order, Scope scope) {
  Thread &self = state(thread);
  Message &message = messages_[key(address)];
  if (message.block != block_) message = {block_, {0, message.released.wide}};
  const NodeId wide = scope == Scope::kGpu ? message.released.wide : 0;
  if (acquires(order)) {
    acquire(thread, join(message.released.local, wide));
  } else {
    self.read.local = join(self.read.local, message.released.local);
    self.read.wide = join(self.read.wide, wide);
  }
  const NodeId own = releases(order) ? release(thread) : 0;
  // An atomic operation continues the release sequence that it reads: earlier releases stay.
  message.released.local = join(message.released.local, join(own, self.fenced.local));
  if (scope == Scope::kGpu)
    message.released.wide = join(message.released.wide, join(own, self.fenced.wide));
}

// ---- what is seen ----

bool BlockOrder::covers(const Node &node, const Writer &writer) const {
  if (writer.stamp <= node.base) return true;
  if (writer.thread == node.thread) return writer.stamp <= node.own;
  const auto end = others_.begin() + node.others_end;
  return std::any_of(others_.begin() + node.others_begin, end, [&](const auto &other) {
    return other.first == writer.thread && writer.stamp <= other.second;
  });
}

// Collects the nodes below `top` by block.
void BlockOrder::open(View &view, NodeId top) {
  view.top = top;
  view.nodes.clear();
  visited_.resize(nodes_.size(), 0);
  ++search_;
  std::vector<NodeId> open = {top};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id == 0 || visited_[id] == search_) continue;
    visited_[id] = search_;
    const Node &node = nodes_[id];
    if (node.block != Node::kNoBlock) view.nodes[node.block].push_back(id);
    open.push_back(node.left);
    open.push_back(node.right);
  }
}

bool BlockOrder::below(View &view, NodeId top, const Writer &writer) {
  if (top == 0) return false;
  if (view.top != top) open(view, top);
  const auto nodes = view.nodes.find(writer.block);
  if (nodes == view.nodes.end()) return false;
  return std::any_of(nodes->second.begin(), nodes->second.end(),
                     [&](NodeId id) { return covers(nodes_[id], writer); });
}

bool BlockOrder::sees(uint32_t thread, const Writer &writer) {
  if (below(block_view_, root_, writer)) return true;
  const NodeId top = knowledge(thread);
  return top != root_ && below(thread_view_, top, writer);
}

} // namespace assay::simt
