// SPDX-License-Identifier: Apache-2.0
// What releases and acquires have ordered, between the blocks of a launch and between devices that
// run side by side: the causality order of the PTX memory model. Every block has a BlockOrder,
// which adds nodes here; nobody follows their links until a thread meets an access of another
// block.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/simt/access_history.h"

namespace assay::simt {

class OrderGraph {
public:
  using NodeId = uint32_t; // 0: none

  // What was released: accesses of one block up to a stamp, and what the nodes below it stand for.
  // A node without a launch stands for the nodes below it alone.
  struct Node {
    uint32_t launch = 0;
    uint32_t block = 0;                        // or kWholeLaunch
    uint32_t base = 0;                         // accesses of all threads up to this stamp
    uint32_t thread = 0, own = 0;              // and of `thread` up to this stamp
    uint32_t others_begin = 0, others_end = 0; // and of other threads up to those in the graph
    NodeId left = 0, right = 0;
  };
  static constexpr uint32_t kWholeLaunch = 0xffffffff;

  // What the threads of the same block may acquire, those of the same device, and all.
  struct Nodes {
    NodeId block = 0, device = 0, system = 0;
  };
  // What lies at the address of an atomic operation, and who put it there.
  struct Message {
    uint32_t launch = 0, block = 0, device = 0;
    Nodes released;
  };
  // The nodes below `top`, by launch and block.
  struct View {
    NodeId top = 0;
    std::unordered_map<uint64_t, std::vector<NodeId>> nodes;
  };

  void clear();

  // Time is a stamp: everything that orders counts it up.
  uint32_t stamp() const { return stamp_; }
  uint32_t next_stamp() { return stamp_++; }

  NodeId add(const Node &node);
  NodeId join(NodeId a, NodeId b);
  // All that a launch did, and what its blocks knew at their ends.
  NodeId add_launch(uint32_t launch, NodeId knowledge);
  // Stamps of other threads of a block, for the node that is added next.
  void add_other(uint32_t thread, uint32_t stamp) { others_.emplace_back(thread, stamp); }
  uint32_t others() const { return static_cast<uint32_t>(others_.size()); }

  Message &message_at(const void *address) {
    return messages_[reinterpret_cast<uintptr_t>(address)];
  }

  // Whether `access` is among what `top` stands for. `view` is the caller's, of the latest top.
  bool below(View &view, NodeId top, const Writer &access);

private:
  void open(View &view, NodeId top);
  bool covers(const Node &node, const Writer &access) const;

  uint32_t stamp_ = 0;
  std::vector<Node> nodes_ = {{}};
  std::vector<std::pair<uint32_t, uint32_t>> others_; // thread, stamp
  std::unordered_map<uintptr_t, Message> messages_;
  std::vector<uint32_t> visited_; // per node: the latest search that met it
  uint32_t search_ = 0;
};

} // namespace assay::simt
