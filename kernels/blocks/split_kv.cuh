// SPDX-License-Identifier: Apache-2.0
// Split-KV over a SplitPlan: what a block of paged_attention_v2 and of tree_attention does. Blocks
// write fp32 partials of the requests that they share. The block that is the last to finish a split
// of a (request, head tile) merges its partials, in the same launch.
#pragma once

#include "kernels/blocks/decode_core.cuh"
#include "kernels/blocks/decode_params.h"
#include "kernels/blocks/plan_items.cuh"

namespace assay::ASSAY_TARGET {

/// The partials of one (request, head tile).
template <int kRows>
struct Partials {
  const SplitKvParams &params;
  const WorkItem &item;
  const int head_tile;
  const int rows; // rows that exist, of kRows

  /// The first partial row of a split. A slot times head_tiles fits into 32 bits, since a launch
  /// has at most 2^31 - 1 blocks, and a block has two slots.
  ASSAY_DEVICE uint64_t row(int split) const {
    const SplitPlanShape &shape = params.plan.shape;
    const auto slot = static_cast<uint32_t>(item.slot(split, shape.slot_stride()));
    return uint64_t{slot * shape.head_tiles + head_tile} * kRows;
  }
};

/// The largest LSE that query row lane % kRows of the head tile has in a split, or -inf where that
/// row does not exist.
template <class Core>
ASSAY_DEVICE typename Core::Number largest_lse(const Partials<Core::kRows> &partials) {
  using Number = typename Core::Number;
  constexpr int kLanes = arch::kWarpSize, kBatch = 4, kStep = kLanes / Core::kRows;
  const Number *lse_accum = words_of<Number>(partials.params.partial.lse_accum);
  const int lane = arch::lane_id(), row = lane % Core::kRows;
  const int count = row < partials.rows ? partials.item.num_splits : 0;
  Number largest = arch::neg_infinity();
  ASSAY_UNROLL_BY(1)
  for (int first = lane / Core::kRows; first < count; first += kBatch * kStep) {
    Number lse[kBatch];
    ASSAY_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const int split = first + i * kStep < count ? first + i * kStep : first;
      lse[i] = arch::global_load(lse_accum + partials.row(split) + row);
    }
    ASSAY_UNROLL
    for (int i = 0; i < kBatch; ++i)
      largest = arch::max_num(largest, lse[i]);
  }
  ASSAY_UNROLL
  for (int mask = Core::kRows; mask < kLanes; mask *= 2)
    largest = arch::max_num(largest, arch::shfl_xor(largest, mask));
  return largest;
}

/// Begins to merge the partials of a finished (request, head tile). Warp w sums those of the splits
/// w, w + kWarps, ... in this order, and leaves the sum where its state would stand behind an item.
/// The code that merges warps then finishes the work. A partial is weighted by
/// 2^(its LSE - the largest LSE of its query row): it is scaled once, and the bits do not depend on
/// which block merges.
///
/// Most of the time a warp waits for loads, and so it has all loads of a split in flight together.
/// `paired`: where at most half of the query rows of the head tile exist, the registers of the
/// other half hold the same rows of a second split, which is kWarps splits further on.
template <class Core>
ASSAY_DEVICE void publish_partials(const Partials<Core::kRows> &partials) {
  using Number = typename Core::Number;
  using Vector = Pack<Number, 4>;
  constexpr int kLanes = arch::kWarpSize, kRowVectors = Core::kHeadDim / 4;
  constexpr int kLaneVectors = Core::kRows * kRowVectors / kLanes;
  // The queries of the next item wait in registers meanwhile. These numbers do not spill.
  constexpr bool kAtOnce = kLaneVectors <= 8 && Core::kRows == 8;
  constexpr int kBatch = kAtOnce ? kLaneVectors : Core::kFeatures ? 2 : 4;
  constexpr int kHalf = Core::kRows / 2;
  const bool paired = kAtOnce && partials.rows <= kHalf && partials.item.num_splits > Core::kWarps;
  auto &storage = arch::shared_storage<typename Core::SharedStorage>().merge;
  const Number *o_accum = words_of<Number>(partials.params.partial.o_accum);
  const Number *lse_accum = words_of<Number>(partials.params.partial.lse_accum);
  const int lane = arch::lane_id(), warp = arch::warp_id(), lane_row = lane % Core::kRows;
  const int count = partials.item.num_splits, step = paired ? 2 * Core::kWarps : Core::kWarps;
  Number largest = arch::neg_infinity();
  ASSAY_UNROLL_BY(1)
  for (int batch = 0; batch < kLaneVectors; batch += kBatch) {
    const int first = batch * kLanes + lane; // vector of the slot
    const auto row_of = [&](int i) { return (first + i * kLanes) / kRowVectors; };
    Vector part[kBatch];
    Number part_lse = arch::neg_infinity(); // LSE of row lane_row
    int end = partials.rows; // end of the loaded rows; paired: those of split 2 begin at kHalf
    const auto is_live = [&](int row) { return row < (row < kHalf ? partials.rows : end); };
    const auto load = [&](int split) {
      const uint64_t own = partials.row(split);
      uint64_t upper = own; // the partial of a row r from kHalf on is at upper + r
      if (paired) {
        const bool second = split + Core::kWarps < count;
        upper = partials.row(second ? split + Core::kWarps : split) - kHalf;
        end = second ? kHalf + partials.rows : 0;
      }
      part_lse = arch::neg_infinity();
      if (is_live(lane_row))
        part_lse = arch::global_load(lse_accum + (lane_row < kHalf ? own : upper) + lane_row);
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i)
        if (is_live(row_of(i)))
          part[i] = Vector::load(o_accum + (row_of(i) < kHalf ? own : upper) * Core::kHeadDim +
                                 4 * (first + i * kLanes));
    };
    if (warp < count) load(warp);
    if (batch == 0) {
      largest = largest_lse<Core>(partials); // beside the first loads
      if (paired) largest = arch::shfl_idx(largest, lane & ~kHalf);
    }
    Number sum[kBatch][4], mass = 0.0f; // mass: of row lane_row
    ASSAY_UNROLL
    for (int i = 0; i < 4 * kBatch; ++i)
      sum[i / 4][i % 4] = 0.0f;
    ASSAY_UNROLL_BY(1)
    for (int split = warp; split < count; split += step) {
      if (split != warp) load(split);
      const Number weight = AttentionState<Number, 4>::weight(part_lse, largest, 1.0f);
      mass += weight;
      ASSAY_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const Number row_weight = arch::shfl_idx(weight, row_of(i));
        // A state of weight 0 may hold infinities, where a row has overflowed.
        if (!is_live(row_of(i)) || row_weight == 0.0f) continue;
        Number o[4];
        part[i].unpack(o);
        ASSAY_UNROLL
        for (int k = 0; k < 4; ++k)
          sum[i][k] = arch::fma_rn(row_weight, o[k], sum[i][k]);
      }
    }
    if (paired) {
      mass += arch::shfl_xor(mass, kHalf);
      ASSAY_UNROLL
      for (int i = 0; i < 2 * kBatch; ++i)
        sum[i / 4][i % 4] += sum[kBatch / 2 + i / 4][i % 4];
    }
    ASSAY_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const int dim = (first + i * kLanes) % kRowVectors * 4, row = row_of(i);
      if (row < partials.rows)
        arch::shared_store(
            reinterpret_cast<arch::Vec4 *>(&storage.o[warp][row][storage.index(row, dim)]),
            Vector::pack(sum[i]).raw[0]);
    }
    if (batch == 0 && lane < partials.rows) {
      arch::shared_store(&storage.m[warp][lane], largest);
      arch::shared_store(&storage.d[warp][lane], mass);
    }
  }
}

/// Whether this block was the last to store a partial of a (request, head tile). Then all its
/// partials are visible.
template <class Core>
ASSAY_DEVICE bool is_last(const SplitPlan &plan, const WorkItem &item, int head_tile) {
  // The first barrier orders the stores of this block before the release of thread 0. The acquire
  // of thread 0 and the second barrier order the stores of other blocks before the loads of this
  // one. The counter wraps to 0 by itself, ready for the next layer or replay of a graph.
  auto &shared = arch::shared_storage<typename Core::SharedStorage>();
  arch::block_barrier();
  if (arch::thread_idx() == 0) {
    uint32_t *counter = plan.counters + int64_t{item.request} * plan.shape.head_tiles + head_tile;
    const uint32_t last = item.num_splits - 1;
    const uint32_t before = arch::atomic_inc_acq_rel(counter, last);
    arch::shared_store(&shared.is_last, before == last ? 1u : 0u);
  }
  arch::block_barrier();
  return arch::shared_load(&shared.is_last) != 0u;
}

/// Writes the rows of the requests without keys that a worker has.
template <class Core, class Items, class Join>
ASSAY_DEVICE void write_empty_rows(const SplitKvParams &params, const Items &items, Join join) {
  items.for_each_empty([&](const DecodeWork &work) {
    const int rows = Core::rows_in_tile(params.attention, params.features, work);
    Core::for_each_slice(
        typename Core::BlockTeam{}, params.features, work, rows, [&](int row, int dim) {
          auto slice = Core::Slice::identity();
          auto lse2 = slice.lse2(1.0f);
          join.row(work, row, dim, slice.o, lse2);
          Core::store_row(params.attention, params.features, work, row, dim, slice.o, lse2);
        });
  });
}

/// Computes the items of a block, and says where their rows go. The rows of a request that the
/// block holds whole go straight to O, the others to a slot. The block that stores the last slot of
/// a request merges all of them: it calls publish_partials(), and then runs the code that wrote its
/// own partial once more. (A merge with code of its own would have to be fetched at a time when
/// every instruction is new to the cache.)
///   join.begin()                          is called in front of the first row of an item
///   join.row(work, row, dim, o, lse2)     may add to a row of the head tile, before it goes to O
template <class Core, class Items, class Join>
ASSAY_DEVICE void run_plan(const SplitKvParams &params, const Items &items, Join join) {
  const DecodeParams &attention = params.attention;
  const FeatureParams &features = params.features;
  const typename Core::BlockTeam team{};
  Core::run(
      attention, features, params.kv, team, items,
      [&] { write_empty_rows<Core>(params, items, join); },
      [&](const WorkItem &item, auto merged, float scale) {
        join.begin();
        const DecodeWork work = items.work_of(item);
        const int rows = Core::rows_in_tile(attention, features, work);
        const Partials<Core::kRows> partials{params, item, items.head_tile(), rows};
        const auto write = [&](bool final, bool in_parts) {
          Core::for_each_slice(team, features, work, rows, [&](int row, int dim) {
            auto slice = merged(row, dim, scale, in_parts);
            auto lse2 = slice.lse2(scale);
            slice.normalize();
            if (final) {
              join.row(work, row, dim, slice.o, lse2);
              Core::store_row(attention, features, work, row, dim, slice.o, lse2);
            } else {
              store_partial<Core::kHeadDim>(params.partial, partials.row(item.split) + row, dim,
                                            slice.o, lse2);
            }
          });
        };
        // NOTE: such an item does not enter the loop below. In front of the loop the compiler waits
        // for every load, also of the queries of the next item (fp8 b256 256 on an H200: 45.2 us
        // instead of 43.3).
        if (item.num_splits == 1) return write(true, true);
        bool final = false;
        ASSAY_UNROLL_BY(1)
        while (true) {
          write(final, !final);
          if (final || !is_last<Core>(params.plan, item, items.head_tile())) return;
          publish_partials<Core>(partials);
          arch::block_barrier();
          final = true;
          scale = 1.0f; // LSEs are base-2 logits
        }
      });
}

/// Adds nothing to a row.
struct JoinNothing {
  ASSAY_DEVICE void begin() const {}
  template <class O, class Lse>
  ASSAY_DEVICE void row(const DecodeWork &, int, int, const O &, const Lse &) const {}
};

} // namespace assay::ASSAY_TARGET
