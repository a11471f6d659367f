// SPDX-License-Identifier: Apache-2.0
// What the threads of a block see of what other blocks of the launch wrote. Blocks run one after
// the other here; on a device they do not, and a write is seen only where releases and acquires
// order it before the reader (the causality order of the PTX memory model).
//
// Time is a stamp, counted up by everything that orders. Inside a block a log of meetings since the
// last block barrier says what a thread knows of the others; block barriers need no log, since all
// know all behind them. A release leaves a node at the address of its atomic operation: what the
// thread knew of its own block, by stamps, and links to the nodes it had acquired. Nobody follows
// them until a thread meets another block's write.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/simt/last_writers.h"

namespace assay::simt {

class BlockOrder {
public:
  void begin_launch();
  void begin_block(uint32_t block, uint32_t threads);

  // Of what is written now.
  uint32_t stamp() const { return stamp_; }
  void wrote() { quiet_ = false; }

  // Meetings: what any of them did before is ordered before what any does afterwards.
  void block_barrier() {
    if (!quiet_) all_meet();
  }
  void warps_meet(uint32_t warps) {
    if (!quiet_) log({Event::kWarpsMeet, 0, warps, stamp_});
  }
  void lanes_meet(uint32_t warp, uint32_t lanes) {
    if (!quiet_) log({Event::kLanesMeet, warp, lanes, stamp_});
  }
  // mbarriers: who has passed a phase knows what all did who arrived in it and before.
  void arrived(uint32_t thread, uint32_t mbarrier, uint32_t phase) {
    if (!quiet_) log({Event::kArrived, thread, mbarrier, stamp_, static_cast<int32_t>(phase)});
  }
  void passed(uint32_t thread, uint32_t mbarrier, int32_t phase) {
    if (!quiet_) log({Event::kPassed, thread, mbarrier, stamp_, phase});
  }

  void fence(uint32_t thread, Scope scope);
  void atomic(uint32_t thread, const void *address, AtomicOrder order, Scope scope);

  // Whether a write of another block is ordered before what `thread` does now.
  bool sees(uint32_t thread, const Writer &writer);

private:
  using NodeId = uint32_t; // 0: none

  // What was released: writes of one block up to a stamp, and the nodes below; or the nodes alone.
  struct Node {
    static constexpr uint32_t kNoBlock = 0xffffffff;
    uint32_t block = kNoBlock;
    uint32_t base = 0;                         // up to here, of all threads
    uint32_t thread = 0, own = 0;              // up to here, of this one
    uint32_t others_begin = 0, others_end = 0; // in others_: more of the other threads
    NodeId left = 0, right = 0;
  };
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
    NodeId node; // includes those acquired before
  };
  // Nodes for threads of the same block, and for all.
  struct Nodes {
    NodeId local = 0, wide = 0;
  };
  struct Thread {
    uint64_t block_serial = 0;      // others are of another block
    Nodes fenced;                   // what its latest fence may release
    Nodes read;                     // read by relaxed atomics; acquired by its next fence
    std::vector<Acquired> acquired; // since the last block barrier
  };
  struct Message { // at the address of an atomic operation
    uint32_t block = Node::kNoBlock;
    Nodes released; // local: of `block`
  };
  // The nodes below one, by block.
  struct View {
    NodeId top = 0;
    std::unordered_map<uint32_t, std::vector<NodeId>> nodes;
  };

  void all_meet();
  void log(const Event &event);
  Thread &state(uint32_t thread);
  NodeId join(NodeId a, NodeId b);
  void acquire(uint32_t thread, NodeId node);
  NodeId release(uint32_t thread);
  void look_back(uint32_t thread);
  void look_back_at(const Event &event, std::array<int32_t, 256> &phases);
  void raise(uint32_t first, uint32_t lanes, uint32_t stamp);
  bool any_knows(uint32_t first, uint32_t lanes, uint32_t stamp) const;
  NodeId knowledge(uint32_t thread);
  bool below(View &view, NodeId top, const Writer &writer);
  void open(View &view, NodeId top);
  bool covers(const Node &node, const Writer &writer) const;

  uint32_t stamp_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::pair<uint32_t, uint32_t>> others_; // thread, stamp
  std::unordered_map<uintptr_t, Message> messages_;
  std::vector<uint32_t> visited_; // per node: the search that met it
  uint32_t search_ = 0;

  // Of the running block.
  uint32_t block_ = 0, threads_ = 0;
  uint64_t block_serial_ = 0;
  bool quiet_ = true; // nobody has written or acquired since the last block barrier
  uint32_t base_ = 0; // stamp of that barrier
  NodeId root_ = 0;   // acquired before it
  std::vector<Event> log_;
  std::vector<Thread> states_;
  std::vector<uint32_t> acquirers_; // threads with acquired nodes
  View block_view_, thread_view_;

  // Per thread of the block: up to which stamp `looking_` knows it; valid for version_.
  std::vector<uint32_t> known_;
  uint64_t version_ = 0, looked_ = ~uint64_t{0}; // counts changes of log and acquired nodes
  uint32_t looking_ = 0;
  NodeId knowledge_ = 0;
};

} // namespace assay::simt
