// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/block_order.h"

#include <algorithm>
#include <utility>

namespace assay::simt {
namespace {

bool acquires(AtomicOrder order) {
  return order == AtomicOrder::kAcquire || order == AtomicOrder::kAcqRel;
}
bool releases(AtomicOrder order) {
  return order == AtomicOrder::kRelease || order == AtomicOrder::kAcqRel;
}

} // namespace

void BlockOrder::begin_launch(OrderGraph &graph, uint32_t launch, uint32_t device, NodeId before) {
  graph_ = &graph;
  launch_ = launch;
  device_ = device;
  before_ = before;
  block_view_ = {};
  thread_view_ = {};
}

void BlockOrder::begin_block(uint32_t block, uint32_t threads) {
  block_ = block;
  threads_ = threads;
  ++block_serial_;
  if (states_.size() < threads) states_.resize(threads);
  root_ = before_;
  acquirers_.clear();
  clocks_.begin_block(threads, tick());
}

// The end of a launch is a fence of the system to what its threads have read by relaxed atomic
// operations, as its begin is to what the launches in front did.
BlockOrder::NodeId BlockOrder::end_block() {
  all_meet();
  for (const Thread &thread : states_)
    if (thread.block_serial == block_serial_)
      root_ =
          graph_->join(root_, graph_->join(thread.read.block,
                                           graph_->join(thread.read.device, thread.read.system)));
  return root_;
}

// ---- meetings inside the block ----

void BlockOrder::all_meet() {
  for (const uint32_t thread : acquirers_) {
    root_ = graph_->join(root_, states_[thread].acquired.back().node);
    states_[thread].acquired.clear();
  }
  acquirers_.clear();
  clocks_.all_meet(tick());
}

// What the block had acquired before its last barrier, and what those whom the thread knows of had
// acquired up to there.
BlockOrder::NodeId BlockOrder::knowledge(uint32_t thread) {
  if (acquirers_.empty()) return root_;
  if (looked_ == version_ && looking_ == thread) return knowledge_;
  looked_ = version_;
  looking_ = thread;
  knowledge_ = root_;
  for (const uint32_t other : acquirers_) {
    const std::vector<Acquired> &acquired = states_[other].acquired;
    const auto later =
        std::upper_bound(acquired.begin(), acquired.end(), clocks_.known(thread, other),
                         [](uint32_t stamp, const Acquired &a) { return stamp < a.stamp; });
    if (later != acquired.begin()) knowledge_ = graph_->join(knowledge_, (later - 1)->node);
  }
  return knowledge_;
}

// ---- releases and acquires ----

BlockOrder::Thread &BlockOrder::state(uint32_t thread) {
  Thread &state = states_[thread];
  if (state.block_serial == block_serial_) return state;
  state.block_serial = block_serial_;
  state.fenced = {before_, before_, before_};
  state.read = {};
  state.acquired.clear();
  return state;
}

void BlockOrder::acquire(uint32_t thread, NodeId node) {
  if (node == 0) return;
  std::vector<Acquired> &acquired = state(thread).acquired;
  if (acquired.empty()) acquirers_.push_back(thread);
  acquired.push_back(
      {clocks_.epoch(thread), acquired.empty() ? node : graph_->join(acquired.back().node, node)});
  ++version_;
}

BlockOrder::NodeId BlockOrder::release(uint32_t thread) {
  OrderGraph::Node node;
  node.launch = launch_;
  node.block = block_;
  node.base = clocks_.base();
  node.thread = thread;
  node.own = clocks_.epoch(thread);
  node.left = knowledge(thread);
  node.others_begin = graph_->others();
  if (clocks_.knows_more(thread))
    for (uint32_t other = 0; other < clocks_.participants(); ++other)
      if (const uint32_t known = clocks_.known(thread, other);
          other != thread && known > clocks_.base())
        graph_->add_other(other, known);
  node.others_end = graph_->others();
  moment(thread); // what the thread does from here on is not released
  return graph_->add(node);
}

void BlockOrder::fence(uint32_t thread, Scope scope) {
  Thread &self = state(thread);
  acquire(thread, std::exchange(self.read.block, 0));
  if (scope >= Scope::kGpu) acquire(thread, std::exchange(self.read.device, 0));
  if (scope >= Scope::kSystem) acquire(thread, std::exchange(self.read.system, 0));
  self.fenced.block = release(thread);
  if (scope >= Scope::kGpu) self.fenced.device = self.fenced.block;
  if (scope >= Scope::kSystem) self.fenced.system = self.fenced.block;
}

bool BlockOrder::of_this_block(const Message &message) const {
  return message.launch == launch_ && message.block == block_;
}

void BlockOrder::read_message(uint32_t thread, const Message &message, AtomicOrder order,
                              Scope scope) {
  Nodes found;
  if (of_this_block(message)) found.block = message.released.block;
  if (scope >= Scope::kGpu && message.device == device_) found.device = message.released.device;
  if (scope >= Scope::kSystem) found.system = message.released.system;
  if (acquires(order))
    return acquire(thread, graph_->join(found.block, graph_->join(found.device, found.system)));
  Nodes &read = state(thread).read;
  read.block = graph_->join(read.block, found.block);
  read.device = graph_->join(read.device, found.device);
  read.system = graph_->join(read.system, found.system);
}

void BlockOrder::leave_message(uint32_t thread, Message &message, AtomicOrder order, Scope scope) {
  const Nodes fenced = state(thread).fenced;
  const NodeId own = releases(order) ? release(thread) : 0;
  Nodes &released = message.released;
  if (!of_this_block(message)) released.block = 0;
  if (message.device != device_) released.device = 0;
  message.launch = launch_;
  message.block = block_;
  message.device = device_;
  released.block = graph_->join(released.block, graph_->join(own, fenced.block));
  if (scope >= Scope::kGpu)
    released.device = graph_->join(released.device, graph_->join(own, fenced.device));
  if (scope >= Scope::kSystem)
    released.system = graph_->join(released.system, graph_->join(own, fenced.system));
}

void BlockOrder::atomic(uint32_t thread, const void *address, AtomicKind kind, AtomicOrder order,
                        Scope scope) {
  Message &message = graph_->message_at(address);
  if (kind != AtomicKind::kStore) read_message(thread, message, order, scope);
  // A read-modify-write continues the release sequence that it reads: earlier releases stay. A
  // store begins another.
  if (kind == AtomicKind::kStore) message = {};
  if (kind == AtomicKind::kStore || kind == AtomicKind::kReadModifyWrite)
    leave_message(thread, message, order, scope);
}

// ---- what is seen ----

bool BlockOrder::sees(uint32_t thread, const Writer &access) {
  if (graph_->below(block_view_, root_, access)) return true;
  const NodeId top = knowledge(thread);
  return top != root_ && graph_->below(thread_view_, top, access);
}

} // namespace assay::simt
