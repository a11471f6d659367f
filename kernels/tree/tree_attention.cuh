// SPDX-License-Identifier: Apache-2.0
// tree_attention: paged attention that computes the keys which requests share once for all of them.
// Its first kernel works through the items of a prefix tree and leaves partial states. Its second
// kernel is split-KV over the unique suffixes, and adds those states to a row before it writes the
// row.
#pragma once

#include "kernels/blocks/sm90_core.cuh"
#include "kernels/blocks/split_kv.cuh"
#include "kernels/tree/tree_params.h"

namespace assay::ASSAY_TARGET {

/// A TreeItem as a Work of Sm90Core. With kFp8 the cache is fp8.
template <bool kFp8>
struct TreeWork {
  int segment; // the row of the page table
  int kv_head, kv_begin, kv_end;
  int num_rows, first_row;
  int first_member, first_state;

  ASSAY_DEVICE const PagedKvParams &keys(const TreeSharedParams &params) const { return params.kv; }
  ASSAY_DEVICE float scale_log2(const TreeSharedParams &params) const {
    const float scale = params.attention.scale_log2;
    const FeatureParams &f = params.features;
    if (!kFp8 || f.k_scale == nullptr) return scale;
    return scale * arch::global_load_readonly(f.k_scale + kv_head * f.k_scale_stride);
  }
  /// The owner of a row. The rows of a node are those of its members, one member behind the
  /// other; the rows of a member are those of its tokens.
  struct Owner {
    int request, token, head;
  };
  ASSAY_DEVICE Owner owner(const TreeSharedParams &params, int row) const {
    const uint32_t member = divide(row, params.query_rows);
    const uint32_t rest = row - member * params.query_rows.divisor;
    const uint32_t token = divide(rest, params.gqa_group_size);
    return {arch::global_load_readonly(params.members + first_member + member),
            static_cast<int>(token),
            static_cast<int>(kv_head * params.gqa_group_size.divisor + rest -
                             token * params.gqa_group_size.divisor)};
  }
  template <class E>
  ASSAY_DEVICE const E *query(const TreeSharedParams &params, int row) const {
    const AttentionParams &a = params.attention;
    const Owner of = owner(params, row);
    return static_cast<const E *>(a.q) + of.request * a.q_stride_batch + of.head * a.q_stride_head +
           of.token * params.features.q_stride_token;
  }
  /// What Sm90Transform asks of a Work, beside owner().
  ASSAY_DEVICE const FeatureParams &features(const TreeSharedParams &params) const {
    return params.features;
  }
  ASSAY_DEVICE int position(const TreeSharedParams &params, const Owner &of) const {
    return arch::global_load_readonly(params.kv.seq_lens + of.request) - params.features.q_len +
           of.token;
  }
  ASSAY_DEVICE int64_t partial_row(const TreeSharedParams &, int row) const {
    return int64_t{first_state} + row;
  }
};

/// Shared memory of tree_shared. With head_dim 128 it is all that a block can have.
template <class Core>
struct TreeStorage {
  static constexpr bool kIndexInRegister = Core::kDims == 256;
  typename Core::SharedStorage core;                    // first, since Core looks for it there
  uint16_t next[kIndexInRegister ? 1 : Core::kThreads]; // see TreeItems
};

/// The items of a block: every `blocks`-th of the tree, from the number of the block on. The cursor
/// is an index. A producer has no register to spare for the index: each thread keeps it in shared
/// memory. With head_dim 256 producers have more registers (Sm90Core), and it is kept in one.
template <class Core>
class TreeItems {
public:
  using Work = TreeWork<Core::kFp8>;
  static constexpr bool kOneItem = false;

  ASSAY_DEVICE explicit TreeItems(const TreeSharedParams &params) : params_(params) {
    move_to(static_cast<int32_t>(arch::block_idx_x()));
  }

  ASSAY_DEVICE bool next(Work &work) {
    const TreeItem item = load(index());
    move_to(index() + params_.blocks);
    work = {item.request, item.kv_head,   item.kv_begin,     item.kv_end,
            item.rows,    item.first_row, item.first_member, item.first_state};
    return item.kv_begin < item.kv_end;
  }

  ASSAY_DEVICE bool none() const {
    const TreeItem item = load(index());
    return item.kv_begin == item.kv_end;
  }

private:
  static constexpr bool kInRegister = TreeStorage<Core>::kIndexInRegister;

  ASSAY_DEVICE TreeItem load(int32_t index) const {
    union {
      arch::Vec4 vectors[2];
      TreeItem item;
    } u;
    const auto *p = reinterpret_cast<const arch::Vec4 *>(params_.items + index);
    u.vectors[0] = arch::global_load_readonly(p);
    u.vectors[1] = arch::global_load_readonly(p + 1);
    return u.item;
  }

  ASSAY_DEVICE int32_t index() const {
    return kInRegister ? next_ : arch::shared_load(next_of_thread());
  }
  ASSAY_DEVICE void move_to(int32_t index) {
    if constexpr (kInRegister)
      next_ = index;
    else
      arch::shared_store(next_of_thread(), static_cast<uint16_t>(index));
  }
  static ASSAY_DEVICE uint16_t *next_of_thread() {
    return arch::shared_storage<TreeStorage<Core>>().next + arch::thread_idx();
  }

  const TreeSharedParams &params_;
  int32_t next_ = 0;
};

/// Grid: params.blocks. A block past the last item ends at once.
template <class Core>
ASSAY_KERNEL((Core::kThreads), 1)
tree_shared(const ASSAY_GRID_CONSTANT TreeSharedParams params) {
  if constexpr (arch::kWarpgroups) {
    arch::wait_for_previous_grid();
    arch::start_next_grid();
    const TreeItems<Core> items(params);
    if (!items.none()) Core::run(params, items, Core::kGroups);
  } else {
    arch::trap_without_warpgroups();
  }
}

/// Adds the partial states of tree_shared to a row of the unique suffix.
template <class Core>
struct JoinShared {
  using Number = typename Core::Number;
  using State = typename Core::Slice;
  static constexpr int kDims = Core::kSliceDims;

  ASSAY_DEVICE void begin() const {
    arch::wait_for_previous_grid();
    arch::start_next_grid();
  }

  /// o is normalised and lse2 is in base 2, before and after. Nodes are added from the root down,
  /// and splits of a node in order.
  ASSAY_DEVICE void row(const DecodeWork &work, int tile_row, int dim, Number (&o)[kDims],
                        Number &lse2) const {
    State state = State::from_normalized(lse2, o);
    const TreeCoord *coords = params.coords + int64_t{work.request} * kTreeLevels;
    bool joined = false;
    ASSAY_UNROLL_BY(1)
    for (int level = 0; level < kTreeLevels; ++level) {
      const TreeCoord coord = load(coords + level);
      if (coord.splits == 0) break;
      const int row = coord.first_state + work.kv_head * coord.rows + work.first_row + tile_row;
      const int64_t stride = int64_t{params.own.attention.num_kv_heads} * coord.rows;
      ASSAY_UNROLL_BY(1)
      for (int split = 0; split < coord.splits; split += kBatch)
        add(state, row + split * stride, stride, coord.splits - split, dim);
      joined = true;
    }
    if (!joined) return;
    lse2 = state.lse2(1.0f);
    state.normalize();
    ASSAY_UNROLL
    for (int i = 0; i < kDims; ++i)
      o[i] = state.o[i];
  }

  const TreeAttentionParams &params;

private:
  /// How many states have their loads in flight together. These numbers do not spill.
  static constexpr int kBatch = Core::kRows > 8 || Core::kHeadDim == 256 ? 2
                                : Core::kFeatures                        ? 4
                                                                         : 8;

  static ASSAY_DEVICE TreeCoord load(const TreeCoord *p) {
    union {
      arch::Vec4 vector;
      TreeCoord coord;
    } u;
    u.vector = arch::global_load_readonly(reinterpret_cast<const arch::Vec4 *>(p));
    return u.coord;
  }

  /// Adds the next kBatch of `left` states, which are `stride` rows apart.
  ASSAY_DEVICE void add(State &state, int64_t row, int64_t stride, int left, int dim) const {
    using Vector = Pack<Number, kDims>;
    const Number *o_accum = words_of<Number>(params.shared.o_accum);
    const Number *lse_accum = words_of<Number>(params.shared.lse_accum);
    Number lse[kBatch];
    Vector part[kBatch];
    ASSAY_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const int64_t at = row + (i < left ? i : 0) * stride;
      lse[i] = arch::global_load(lse_accum + at);
      part[i] = Vector::load(o_accum + at * Core::kHeadDim + dim);
    }
    ASSAY_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      if (i >= left) continue;
      Number o[kDims];
      part[i].unpack(o);
      state.merge(State::from_normalized(lse[i], o), 1.0f);
    }
  }
};

/// Grid: that of paged_attention_v2. Runs behind tree_shared alone, and so with warpgroups.
template <class Core>
ASSAY_KERNEL((Core::kThreads), (Core::kPolicy.min_blocks))
tree_attention(const ASSAY_GRID_CONSTANT TreeAttentionParams params) {
  if constexpr (arch::kWarpgroups) {
    const SplitKvParams &own = params.own;
    const PlanItems<Core::kRows, false> items(own.plan, own.tiles_per_kv_head, arch::block_idx_x());
    const JoinShared<Core> join{params};
    run_plan<Core>(own, items, join);
    join.begin();
    write_empty_rows<Core>(own, items, join);
  } else {
    arch::trap_without_warpgroups();
  }
}

} // namespace assay::ASSAY_TARGET
