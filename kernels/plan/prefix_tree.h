// SPDX-License-Identifier: Apache-2.0
// PrefixTree: which keys requests share, and who computes them once for all of them. Its functions
// compute with integers, and do the same on host and device.
//
// Requests whose page tables begin with the same pages share the keys in these pages. A node of the
// tree is a run of such keys, and the requests that share the run. The keys in front of the run
// belong to the nodes above. Sharing saves reads, and costs a partial state per row and split.
// Where it does not pay, the keys of a node go to the nodes below it, or to the unique suffixes.
//
// A page counts where it is full of keys that all query tokens of a request see. A node ends at a
// multiple of kStartKeys, so that tiles stay aligned to pages.
#pragma once

#include "kernels/plan/device_model.h"
#include "kernels/plan/split_plan.h"

#include <cstdint>

namespace assay {

inline constexpr int kTreeLevels = 4;                   // nodes on the path of a request, at most
inline constexpr int kMaxTreeBatch = 1024;              // requests among which a tree is looked for
inline constexpr int kMaxTreeItems = 4096;              // items of the shared keys of a call
inline constexpr int kMaxNodeSplits = 64;               // splits of a node
inline constexpr int kTreeRows = 128;                   // query rows of an item
inline constexpr int kMaxTreeNodes = 2 * kMaxTreeBatch; // every node has two requests or more

/// Shape of a tree: known on the host without reading page tables.
struct PrefixTreeShape {
  int32_t batch = 0;      // 2 .. kMaxTreeBatch
  int32_t query_rows = 0; // rows of a (request, kv head): q_len * gqa_group_size
  int32_t q_len = 1;      // query tokens of a request, its last keys
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t kv_bytes = 2;  // bytes of an element of the cache
  int32_t page_size = 0; // tokens
  int32_t tile = 0;      // keys of a tile of the shared keys
  int32_t blocks = 0;    // that run the items side by side
  int32_t splits = 0;    // > 0: whatever can be shared is, in nodes of so many splits
  int32_t max_rows = 0;  // partial states that the workspace holds
};

/// What one block computes at a time: some keys of a node, for up to kTreeRows of its query rows.
/// The rows of a node are the rows of its requests, one request behind the other. An item has 32
/// bytes, for two vector loads.
struct alignas(16) TreeItem {
  int32_t request;          // one of the node: its pages are read
  int32_t kv_begin, kv_end; // equal behind the last item
  int32_t kv_head;
  int32_t first_member; // the node's first index in PrefixTree::members
  int32_t rows;         // rows of the node
  int32_t first_row;    // first row of the item
  int32_t first_state;  // partial state of row 0 of the node
};

/// Where the partial states are that one node has of a request. The state of row g of kv head h and
/// split s is first_state + (s * kv_heads + h) * rows + g.
struct alignas(16) TreeCoord {
  int32_t first_state, rows;
  int32_t splits; // 0: no node on this level, nor on those below
  int32_t reserved;
};

/// A tree as it is read.
struct PrefixTree {
  const TreeItem *items;   // [kMaxTreeItems + blocks]: block b has every `blocks`-th from b on,
                           // and `blocks` empty ones stand behind the last
  const TreeCoord *coords; // [batch, kTreeLevels]
  const int32_t *members;  // [kTreeLevels, batch] requests
};

/// Byte offsets behind the SplitPlan of a plan buffer, and the size of what is there.
struct PrefixTreeLayout {
  int64_t items, coords, members, covered, bytes;
};

ASSAY_HOST_DEVICE PrefixTreeLayout prefix_tree_layout(const PrefixTreeShape &s) {
  PrefixTreeLayout l;
  l.items = 0;
  l.coords = (int64_t{kMaxTreeItems} + s.blocks) * static_cast<int64_t>(sizeof(TreeItem));
  l.members = l.coords + int64_t{s.batch} * kTreeLevels * static_cast<int64_t>(sizeof(TreeCoord));
  l.covered = l.members + int64_t{s.batch} * kTreeLevels * 4; // [batch] keys that nodes hold
  l.bytes = l.covered + int64_t{s.batch} * 4;
  return l;
}

struct PrefixNode {
  int32_t request;      // the first of its requests
  int32_t first_member; // in PrefixTree::members
  int32_t members;
  int32_t copies; // how often its keys would be read without it
  int32_t begin, end;
};

ASSAY_HOST_DEVICE int32_t row_tiles_of(const PrefixTreeShape &s, int32_t members) {
  return (members * s.query_rows + kTreeRows - 1) / kTreeRows;
}

/// What sharing gains, in bytes that are not read (DeviceModel). Keys of an fp8 cache cost three
/// quarters of others, not half: they are widened. An item takes a block some time beside its
/// tiles. Each row has two partials on average, and each of those is written and read.
ASSAY_HOST_DEVICE int64_t gain_of(const PrefixTreeShape &s, const PrefixNode &node) {
  const int64_t key = int64_t{s.kv_bytes == 1 ? 3 : 4} * s.head_dim * s.kv_heads; // K, V, all heads
  const int64_t saved = key * (node.end - node.begin) * (node.copies - 1);
  const int64_t partials = int64_t{2} * 8 * s.head_dim * s.kv_heads * s.query_rows * node.members;
  return saved - partials - kH200.item_bytes * s.kv_heads * row_tiles_of(s, node.members);
}

/// Whether the keys of a node are shared in it.
ASSAY_HOST_DEVICE bool is_worth_a_node(const PrefixTreeShape &s, const PrefixNode &node) {
  if (node.end <= node.begin || node.members < 2) return false;
  return node.copies > 1 && (s.splits > 0 || gain_of(s, node) > 0);
}

/// Splits of a node whose items have about `tiles` tiles.
ASSAY_HOST_DEVICE int32_t node_splits(const PrefixTreeShape &s, const PrefixNode &node,
                                      int32_t tiles) {
  const int32_t own = tiles_of(node.end - node.begin, s.tile);
  const int32_t wanted = (own + tiles - 1) / tiles;
  return wanted < kMaxNodeSplits ? wanted : kMaxNodeSplits;
}

ASSAY_HOST_DEVICE int64_t node_items(const PrefixTreeShape &s, const PrefixNode &node,
                                     int32_t splits) {
  return int64_t{splits} * s.kv_heads * row_tiles_of(s, node.members);
}
ASSAY_HOST_DEVICE int64_t node_states(const PrefixTreeShape &s, const PrefixNode &node,
                                      int32_t splits) {
  return int64_t{splits} * s.kv_heads * s.query_rows * node.members;
}

/// Candidate `i` of kMaxNodeSplits for the tiles of an item. The longest node has `longest` tiles.
/// A forced number of splits makes all candidates alike.
ASSAY_HOST_DEVICE int32_t candidate_tiles(const PrefixTreeShape &s, int32_t longest, int i) {
  const int32_t cuts = s.splits > 0 ? (s.splits < longest ? s.splits : longest) : i + 1;
  return (longest + cuts - 1) / cuts;
}

/// What cutting all nodes into items of `tiles` tiles costs, in bytes that the memory would read
/// meanwhile (DeviceModel). It is the sum of
///   the turns of the blocks: in each turn a block has one item, its tiles and what goes with them;
///   the partials, written and read;
///   the joins: each adds the partials of a (request, kv head) to the state of its own keys, and
///   the blocks share them evenly;
///   the rounds of a join: the `splits` of the longest node are loaded eight at a time.
ASSAY_HOST_DEVICE int64_t cut_cost(const PrefixTreeShape &s, int64_t items, int64_t states,
                                   int32_t tiles, int32_t splits) {
  const int64_t turns = (items + s.blocks - 1) / s.blocks;
  const int64_t joins = states / s.query_rows / s.blocks;
  const int64_t rounds = (splits + 7) / 8;
  const int64_t tile_bytes = s.kv_bytes == 1 ? kH200.fp8_tile_bytes : kH200.tile_bytes;
  return turns * (tiles + kH200.block_tiles) * tile_bytes + states * s.head_dim * 8 +
         joins * kH200.join_bytes + rounds * kH200.round_bytes;
}

/// Item `i` of a node that is cut into `splits` and whose states begin at `first_state`. Items of
/// the same keys are neighbours: they run side by side, and L2 serves all but one of them.
ASSAY_HOST_DEVICE TreeItem tree_item(const PrefixTreeShape &s, const PrefixNode &node,
                                     int32_t splits, int64_t first_state, int32_t i) {
  const int32_t row_tiles = row_tiles_of(s, node.members), rows = node.members * s.query_rows;
  const int32_t rest = i / row_tiles, split = rest / s.kv_heads, len = node.end - node.begin;
  const int32_t tiles = tiles_of(len, s.tile);
  const auto key_at = [&](int32_t part) {
    // A plan has at most 2^24 tiles of a request, and a node 64 splits: 32 bits hold the product.
    const int32_t key = tiles * part / splits * s.tile;
    return node.begin + (key < len ? key : len);
  };
  TreeItem item;
  item.request = node.request;
  item.kv_begin = key_at(split);
  item.kv_end = key_at(split + 1);
  item.kv_head = rest % s.kv_heads;
  item.first_member = node.first_member;
  item.rows = rows;
  item.first_row = i % row_tiles * kTreeRows;
  item.first_state = static_cast<int32_t>(first_state + int64_t{rest} * rows);
  return item;
}

} // namespace assay
