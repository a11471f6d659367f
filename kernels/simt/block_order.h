// SPDX-License-Identifier: Apache-2.0
// What the threads of a block see of what other blocks of the launch wrote. Blocks run one after
// the other here, but side by side on a device. There a thread sees a write of another block only
// where releases and acquires order that write before it (the causality order of the PTX memory
// model).
//
// Time is a stamp: everything that orders counts it up. Inside a block a log lists who met whom
// since the last block barrier. What a thread knows of the other threads follows from the log.
// Block barriers are not in the log, since behind one every thread knows everything in front of it.
// A release leaves a node at the address of its atomic operation. The node says, by stamps, what
// the thread knew of its own block, and links to the nodes that the thread had acquired. Nobody
// follows the links until a thread meets a write of another block.
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

  // The stamp of what is written now.
  uint32_t stamp() const { return stamp_; }
  void wrote() { quiet_ = false; }

  // Meetings: what a participant did before is ordered before what any of them does afterwards.
  void block_barrier() {
    if (!quiet_) all_meet();
  }
  void warps_meet(uint32_t warps) {
    if (!quiet_) log({Event::kWarpsMeet, 0, warps, stamp_});
  }
  void lanes_meet(uint32_t warp, uint32_t lanes) {
    if (!quiet_) log({Event::kLanesMeet, warp, lanes, stamp_});
  }
  // mbarriers: a thread that has passed a phase knows what everybody did who arrived in that phase
  // or in one before it.
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

  // What was released: writes of one block up to a stamp, and what the nodes below it stand for. A
  // node without a block stands for the nodes below it alone.
  struct Node {
    static constexpr uint32_t kNoBlock = 0xffffffff;
    uint32_t block = kNoBlock;
    uint32_t base = 0;                         // writes of all threads up to this stamp
    uint32_t thread = 0, own = 0;              // and of `thread` up to this stamp
    uint32_t others_begin = 0, others_end = 0; // and of other threads up to those in others_
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
    NodeId node; // joined with those acquired before
  };
  // What threads of the same block may acquire, and what all threads may.
  struct Nodes {
    NodeId local = 0, wide = 0;
  };
  struct Thread {
    uint64_t block_serial = 0;      // of the block that this is the state of
    Nodes fenced;                   // released by atomic operations behind its latest fence
    Nodes read;                     // read by relaxed atomic operations; its next fence acquires it
    std::vector<Acquired> acquired; // since the last block barrier
  };
  struct Message { // at the address of an atomic operation
    uint32_t block = Node::kNoBlock;
    Nodes released; // `local` is for threads of `block`
  };
  // The nodes below `top`, by block.
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
  std::vector<uint32_t> visited_; // per node: the latest search that met it
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

  // Per thread of the block: the stamp up to which thread `looking_` knows its writes. That holds
  // while looked_ equals version_, which counts changes of the log and of acquired nodes.
  std::vector<uint32_t> known_;
  uint64_t version_ = 0, looked_ = ~uint64_t{0};
  uint32_t looking_ = 0;
  NodeId knowledge_ = 0;
};

} // namespace assay::simt
