// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/order_graph.h"

#include <algorithm>

namespace assay::simt {
namespace {

uint64_t key(uint32_t launch, uint32_t block) { return uint64_t{launch} << 32 | block; }

} // namespace

void OrderGraph::clear() {
  stamp_ = 0;
  nodes_.assign(1, {});
  others_.clear();
  messages_.clear();
  visited_.assign(1, 0);
  search_ = 0;
}

OrderGraph::NodeId OrderGraph::add(const Node &node) {
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

OrderGraph::NodeId OrderGraph::join(NodeId a, NodeId b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  Node node;
  node.left = a;
  node.right = b;
  return add(node);
}

OrderGraph::NodeId OrderGraph::add_launch(uint32_t launch, NodeId knowledge) {
  Node node;
  node.launch = launch;
  node.block = kWholeLaunch;
  node.base = stamp_++;
  node.left = knowledge;
  return add(node);
}

bool OrderGraph::covers(const Node &node, const Writer &access) const {
  if (access.stamp <= node.base) return true;
  if (access.thread == node.thread) return access.stamp <= node.own;
  const auto end = others_.begin() + node.others_end;
  return std::any_of(others_.begin() + node.others_begin, end, [&](const auto &other) {
    return other.first == access.thread && access.stamp <= other.second;
  });
}

// Collects the nodes below `top` by block.
void OrderGraph::open(View &view, NodeId top) {
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
    if (node.launch != 0) view.nodes[key(node.launch, node.block)].push_back(id);
    open.push_back(node.left);
    open.push_back(node.right);
  }
}

bool OrderGraph::below(View &view, NodeId top, const Writer &access) {
  if (top == 0) return false;
  if (view.top != top) open(view, top);
  if (view.nodes.contains(key(access.launch, kWholeLaunch))) return true;
  const auto nodes = view.nodes.find(key(access.launch, access.block));
  if (nodes == view.nodes.end()) return false;
  return std::any_of(nodes->second.begin(), nodes->second.end(),
                     [&](NodeId id) { return covers(nodes_[id], access); });
}

} // namespace assay::simt
