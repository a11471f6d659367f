// SPDX-License-Identifier: Apache-2.0
// What the threads of a block see of what other blocks did. Blocks run one after the other here, or
// in turns, but side by side on a device. There a thread sees a write of another block only where
// releases and acquires order that write before it (the causality order of the PTX memory model).
//
// Inside a block BlockClocks say what a thread knows of the others. A release leaves a node of the
// graph at the address of its atomic operation. The node says, by stamps, what the thread knew of
// its own block, and links to the nodes that the thread had acquired.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/simt/block_clocks.h"
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

  const BlockClocks &clocks() const { return clocks_; }

  // Meetings: what a participant did before is ordered before what any of them does afterwards.
  void block_barrier() { all_meet(); }
  void warps_meet(uint32_t warps) { clocks_.warps_meet(warps, tick()); }
  void lanes_meet(uint32_t warp, uint32_t lanes) { clocks_.lanes_meet(warp, lanes, tick()); }
  // mbarriers: a thread that has passed a phase knows what everybody did who arrived in that phase
  // or in one before it.
  void arrived(uint32_t thread, uint32_t mbarrier) { clocks_.arrived(thread, mbarrier, tick()); }
  void completed(uint32_t mbarrier) { clocks_.completed(mbarrier); }
  void passed(uint32_t thread, uint32_t mbarrier) {
    clocks_.passed(thread, mbarrier);
    ++version_;
  }
  // The copies of an mbarrier in a phase that ends now: their participant, and the stamp of what it
  // did.
  uint32_t copier(uint32_t mbarrier) { return clocks_.copier(mbarrier); }
  uint32_t copied(uint32_t mbarrier) { return clocks_.copied(mbarrier, tick()); }
  // Marks a moment of a thread: what it does from here on has another stamp.
  uint32_t moment(uint32_t thread) {
    const uint32_t now = tick();
    clocks_.advance(thread, now);
    return now;
  }

  void fence(uint32_t thread, Scope scope);
  void atomic(uint32_t thread, const void *address, AtomicKind kind, AtomicOrder order,
              Scope scope);

  // Whether an access is ordered before what `thread` does now: of another block, or of this one
  // by what its threads have acquired from one another.
  bool sees(uint32_t thread, const Writer &access);

private:
  using Nodes = OrderGraph::Nodes;
  using Message = OrderGraph::Message;
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
  Thread &state(uint32_t thread);
  void acquire(uint32_t thread, NodeId node);
  NodeId release(uint32_t thread);
  void read_message(uint32_t thread, const Message &message, AtomicOrder order, Scope scope);
  void leave_message(uint32_t thread, Message &message, AtomicOrder order, Scope scope);
  bool of_this_block(const Message &message) const;
  // Counts time. Whoever meets or acquires may know more from then on.
  uint32_t tick() {
    ++version_;
    return graph_->next_stamp();
  }
  NodeId knowledge(uint32_t thread);

  OrderGraph *graph_ = nullptr;
  uint32_t launch_ = 0, device_ = 0;
  NodeId before_ = 0; // what the launch knew before

  // State of the running block.
  uint32_t block_ = 0, threads_ = 0;
  uint64_t block_serial_ = 0;
  BlockClocks clocks_;
  NodeId root_ = 0; // acquired before the last block barrier
  std::vector<Thread> states_;
  std::vector<uint32_t> acquirers_; // threads with acquired nodes
  OrderGraph::View block_view_, thread_view_;

  // knowledge() of thread `looking_`, while looked_ equals version_.
  uint64_t version_ = 0, looked_ = ~uint64_t{0};
  uint32_t looking_ = 0;
  NodeId knowledge_ = 0;
};

} // namespace assay::simt
