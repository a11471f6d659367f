// SPDX-License-Identifier: Apache-2.0
// What the finder of prefix trees reads, writes, and keeps while it works.
#pragma once

#include "kernels/plan/prefix_tree.h"

namespace assay {

/// What the finder knows of requests and nodes while it works. On the device it lies in shared
/// memory. A group is the requests that have shared all pages so far. Its first request leads it:
/// what is true of the group stands at that request.
struct TreeScratch {
  int64_t key[kMaxTreeBatch];        // group, next page and request, sorted
  int32_t firsts[kMaxTreeBatch + 1]; // keys before that are the first with their group and page
  int32_t pages[kMaxTreeBatch];      // pages of a request that can be shared
  int32_t group[kMaxTreeBatch];      // its leader; -1: the request shares no more
  int32_t size[kMaxTreeBatch];       // size of the group
  int32_t rank[kMaxTreeBatch];       // rank of a request in its group
  int32_t page[kMaxTreeBatch];       // pages that the group shares
  int32_t begin[kMaxTreeBatch];      // keys in nodes so far
  int32_t next[kMaxTreeBatch];       // the group in the next round
  int32_t next_size[kMaxTreeBatch], next_rank[kMaxTreeBatch];
  int32_t first[kMaxTreeBatch];  // the place of the first key of the next group that it leads
  int32_t value[kMaxTreeBatch];  // what one step tells the next
  int32_t copies[kMaxTreeBatch]; // PrefixNode::copies of the newest keys that a request leads; 0:
                                 // these keys become no node
  int32_t spot[kTreeLevels][kMaxTreeBatch]; // node << kSpotBits | rank; -1: none
  PrefixNode nodes[kMaxTreeNodes];
  int32_t items[kMaxTreeNodes + 1], states[kMaxTreeNodes + 1]; // sums over the nodes before
  int64_t cost[kMaxNodeSplits];
  int32_t of_warps[32]; // sums of the warps of a block
  int64_t gain;         // of all nodes
  int32_t longest;      // tiles of the longest node
};
inline constexpr int kSpotBits = 10;
inline constexpr int64_t kNoPage = INT64_MAX; // a key behind all others

struct TreeInput {
  PrefixTreeShape shape;
  const int32_t *page_table, *seq_lens;
  int64_t page_table_stride;
  const int32_t *page_indptr; ///< where the page lists of requests begin; null: the stride says

  /// The page list of a request; load(p) reads a word.
  template <class Load>
  ASSAY_HOST_DEVICE const int32_t *list_of(int32_t request, const Load &load) const {
    return page_table + (page_indptr == nullptr ? request * page_table_stride
                                                : int64_t{load(page_indptr + request)});
  }
};

/// Where a tree is written.
struct TreeOutput {
  TreeItem *items;
  TreeCoord *coords;
  int32_t *members, *covered;
};

/// The tree at `base`, in a plan buffer.
inline TreeOutput tree_output(const PrefixTreeShape &s, void *base) {
  const PrefixTreeLayout l = prefix_tree_layout(s);
  auto *at = static_cast<char *>(base);
  return {reinterpret_cast<TreeItem *>(at + l.items), reinterpret_cast<TreeCoord *>(at + l.coords),
          reinterpret_cast<int32_t *>(at + l.members), reinterpret_cast<int32_t *>(at + l.covered)};
}

} // namespace assay
