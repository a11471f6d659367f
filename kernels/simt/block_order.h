// SPDX-License-Identifier: Apache-2.0
// What the threads of a block see of what other blocks did. Blocks run one after the other here, or
// in turns, but side by side on a device. There a thread sees a write of another block only where
// releases and acquires order that write before it (the causality order of the PTX memory model).
//
// Inside a block a log lists who met whom since the last block barrier. What a thread knows of the
// other threads follows from the log. Block barriers are not in the log, since behind one every
// thread knows everything in front of it. A release leaves a node of the graph at the address of
// its atomic operation. The node says, by stamps, what the thread knew of its own block, and links
// to the nodes that the thread had acquired.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/simt/order_graph.h"

namespace assay::simt {

class BlockOrder {
public:
  using NodeId = OrderGraph::NodeId;

  // Begins a launch: its number, its device, and what all its blocks see.
  void begin_launch(OrderGraph &graph, uint32_t launch, uint32_t device, NodeId before);
  void begin_block(uint32_t block, uint32_t threads);
  // What the block had acquired when all its threads have exited.
  NodeId end_block();

  // The stamp of what is accessed now.
  uint32_t stamp() const { return graph_->stamp(); }
  // Somebody may ask for the order of what the running thread does now.
  void touched() { quiet_ = false; }

  // Meetings: what a participant did before is ordered before what any of them does afterwards.
  void block_barrier() {
    if (!quiet_) all_meet();
  }
  void warps_meet(uint32_t warps) {
    if (!quiet_) log({Event::kWarpsMeet, 0, warps, stamp()});
  }
  void lanes_meet(uint32_t warp, uint32_t lanes) {
    if (!quiet_) log({Event::kLanesMeet, warp, lanes, stamp()});
  }
  // mbarriers: a thread that has passed a phase knows what everybody did who arrived in that phase
  // or in one before it.
  void arrived(uint32_t thread, uint32_t mbarrier, uint32_t phase) {
    if (!quiet_) log({Event::kArrived, thread, mbarrier, stamp(), static_cast<int32_t>(phase)});
  }
  void passed(uint32_t thread, uint32_t mbarrier, int32_t phase) {
    if (!quiet_) log({Event::kPassed, thread, mbarrier, stamp(), phase});
  }

  void fence(uint32_t thread, Scope scope);
  void atomic(uint32_t thread, const void *address, AtomicKind kind, AtomicOrder order,
              Scope scope);

  // Whether an access of another block is ordered before what `thread` does now.
  bool sees(uint32_t thread, const Writer &access);

private:
  using Nodes = OrderGraph::Nodes;
  using Message = OrderGraph::Message;
  struct Event {
    enum Kind : uint8_t { kLanesMeet, kWarpsMeet, kArrived, kPassed };
    Kind kind;
    uint32_t who;  // warp or thread
    uint32_t what; // lanes, warps or mbarrier
    uint32_t stamp;
    int32_t phase = 0;
  };
  struct Acquired {
    uint32_t stamp;
    NodeId node; // joined with those acquired before
  };
  struct Thread {
    uint64_t block_serial = 0;      // serial number of the block of this state
    Nodes fenced;                   // released by atomic operations behind its latest fence
    Nodes read;                     // read by relaxed atomic operations; its next fence acquires it
    std::vector<Acquired> acquired; // since the last block barrier
  };

  void all_meet();
  void log(const Event &event);
  Thread &state(uint32_t thread);
  void acquire(uint32_t thread, NodeId node);
  NodeId release(uint32_t thread);
  void read_message(uint32_t thread, const Message &message, AtomicOrder order, Scope scope);
  void leave_message(uint32_t thread, Message &message, AtomicOrder order, Scope scope);
  bool of_this_block(const Message &message) const;
  void look_back(uint32_t thread);
  void look_back_at(const Event &event, std::array<int32_t, 256> &phases);
  void raise(uint32_t first, uint32_t lanes, uint32_t stamp);
  bool any_knows(uint32_t first, uint32_t lanes, uint32_t stamp) const;
  NodeId knowledge(uint32_t thread);

  OrderGraph *graph_ = nullptr;
  uint32_t launch_ = 0, device_ = 0;
  NodeId before_ = 0; // what the launch knew before

  // State of the running block.
  uint32_t block_ = 0, threads_ = 0;
  uint64_t block_serial_ = 0;
  bool quiet_ = true; // nothing was touched or acquired since the last block barrier
  uint32_t base_ = 0; // stamp of that barrier
  NodeId root_ = 0;   // acquired before it
  std::vector<Event> log_;
  std::vector<Thread> states_;
  std::vector<uint32_t> acquirers_; // threads with acquired nodes
  OrderGraph::View block_view_, thread_view_;

  // Per thread of the block: the stamp up to which thread `looking_` knows its accesses. That holds
  // while looked_ equals version_, which counts changes of the log and of acquired nodes.
  std::vector<uint32_t> known_;
  uint64_t version_ = 0, looked_ = ~uint64_t{0};
  uint32_t looking_ = 0;
  NodeId knowledge_ = 0;
};

} // namespace assay::simt
