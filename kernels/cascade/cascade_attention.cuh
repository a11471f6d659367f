// SPDX-License-Identifier: Apache-2.0
// cascade_attention: every KV segment of every level is read once per 64 query rows that share it;
// the partial states of a request's segments are merged by a second kernel.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/cascade/cascade_policy.h"
#include "kernels/common/attention_tile.cuh"
#include "kernels/common/merge_rows.cuh"
#include "kernels/plan/split_plan.h"

namespace assay::ASSAY_TARGET {

struct CascadeLevelParams {
  PagedKvParams kv;              // rows = segments
  const int32_t *segment_indptr; // [segments + 1] request offsets
  int32_t first_block;           // blocks of earlier levels

  ASSAY_FIELDS(kv, segment_indptr, first_block)
};

struct CascadeParams {
  AttentionParams attention;
  CascadeLevelParams levels[ASSAY_MAX_CASCADE_LEVELS];
  int32_t num_levels, splits;
  float *o_accum;   // [levels * splits, batch, num_qo_heads, head_dim]
  float *lse_accum; // [levels * splits, batch, num_qo_heads]

  ASSAY_FIELDS(attention, levels, num_levels, splits, o_accum, lse_accum)
};

/// Row tiles a level may need, whatever the lengths and the requests per segment: rows of segment s
/// start in tile slot s + floor(indptr[s] * group / rows), and ceil(b - a) <= floor(b) - floor(a)
/// + 1.
ASSAY_HOST_DEVICE int64_t cascade_tile_slots(int64_t segments, int64_t batch, int64_t group,
                                             int64_t rows) {
  return segments + batch * group / rows;
}

/// What one block works on.
struct CascadeWork {
  int level, segment, split, kv_head;
  int first_request, num_rows; // rows = requests * group, packed request-major
  int first_row;               // of this block's tile
};

template <class E, int kHeadDim>
class CascadeCore {
public:
  static constexpr CascadePolicy kPolicy = cascade_policy(kHeadDim);
  using Layout = KvLayout<kHeadDim * sizeof(E)>;
  static constexpr int kWarps = kPolicy.warps, kThreads = kWarps * 32;
  static constexpr int kRows = kPolicy.rows(), kWarpRows = 8 * kPolicy.row_tiles;
  static constexpr int kTileVectors = kPolicy.tile * kHeadDim / 8;
  static constexpr int kWarpTokens = kPolicy.tile / kWarps; // each warp loads its share of a tile
  using Tile = AttentionTile<DecodeTypes<E, E>, kHeadDim, kPolicy.tile, kPolicy.row_tiles>;
  using Loader = WarpTileLoader<E, kHeadDim, kWarpTokens>;

  struct Stage {
    arch::Vec4 k[kTileVectors], v[kTileVectors];
  };
  struct SharedStorage {
    Stage ring[kPolicy.stages];
  };

  /// Finds the block's work; false when its tile slot is idle.
  static ASSAY_DEVICE bool locate(const CascadeParams &params, int block, CascadeWork &work) {
    work.level = 0;
    while (work.level + 1 < params.num_levels && params.levels[work.level + 1].first_block <= block)
      ++work.level;
    const CascadeLevelParams &level = params.levels[work.level];
    const int heads = params.attention.num_kv_heads, group = params.attention.group_size;
    int rest = block - level.first_block;
    work.kv_head = rest % heads;
    rest /= heads;
    work.split = rest % params.splits;
    const int slot = rest / params.splits;
    const auto first_slot = [&](int s) {
      const int64_t request = arch::global_load_readonly(level.segment_indptr + s);
      return s + static_cast<int>(request * group / kRows);
    };
    int low = 0, high = level.kv.rows - 1;
    while (low < high) {
      const int mid = low + (high - low + 1) / 2;
      if (first_slot(mid) <= slot)
        low = mid;
      else
        high = mid - 1;
    }
    work.segment = low;
    work.first_request = arch::global_load_readonly(level.segment_indptr + low);
    work.num_rows =
        (arch::global_load_readonly(level.segment_indptr + low + 1) - work.first_request) * group;
    work.first_row = (slot - first_slot(low)) * kRows;
    return work.first_row >= 0 && work.first_row < work.num_rows;
  }

  static ASSAY_DEVICE void run(const CascadeParams &params, const CascadeWork &work) {
    const AttentionParams &attention = params.attention;
    const int warp_row = work.first_row + static_cast<int>(arch::warp_id()) * kWarpRows;
    const bool has_rows = warp_row < work.num_rows;
    Tile tile;
    tile.load_queries([&](int r) -> const E * {
      const int row = warp_row + r;
      if (row >= work.num_rows) return nullptr;
      return static_cast<const E *>(attention.q) +
             (work.first_request + row / attention.group_size) * attention.q_stride_batch +
             head_of(attention, work, row) * attention.q_stride_head;
    });
    attend(params, work, has_rows, tile);
    if (!has_rows) return;
    tile.reduce_sums();
    store(params, work, warp_row, tile);
  }

private:
  static ASSAY_DEVICE int head_of(const AttentionParams &a, const CascadeWork &work, int row) {
    return work.kv_head * a.group_size + row % a.group_size;
  }

  /// All warps load every tile together and each attends it with its own rows.
  static ASSAY_DEVICE void attend(const CascadeParams &params, const CascadeWork &work,
                                  bool has_rows, Tile &tile) {
    constexpr int kStages = kPolicy.stages;
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    const PagedKvParams &kv_params = params.levels[work.level].kv;
    const int len = arch::global_load_readonly(kv_params.seq_lens + work.segment);
    const int begin = split_begin(len, params.splits, work.split);
    const int end = split_begin(len, params.splits, work.split + 1);
    const PagedKv<E> kv(kv_params, work.segment, work.kv_head);
    Loader loader(kv, begin, end);
    const int token = static_cast<int>(arch::warp_id()) * kWarpTokens;
    const auto load = [&](int base, Stage &stage) {
      if (base < end) loader.template copy<true>(kv_params, stage.k + token * Layout::kChunks);
      arch::cp_async_commit();
      if (base < end) loader.template copy<false>(kv_params, stage.v + token * Layout::kChunks);
      arch::cp_async_commit();
      loader.prefetch_places(kv_params, base + kPolicy.tile + token);
    };
    loader.prefetch_places(kv_params, begin + token);
    for (int s = 0; s < kStages - 1; ++s)
      load(begin + s * kPolicy.tile, shared.ring[s]);
    int stage = 0;
    for (int base = begin; base < end; base += kPolicy.tile) {
      arch::cp_async_wait<2 * (kStages - 1) - 1>();
      // Other warps read what this one copied; and all are done with the stage read last.
      arch::block_barrier();
      load(base + (kStages - 1) * kPolicy.tile, shared.ring[(stage + kStages - 1) % kStages]);
      if (has_rows) {
        tile.compute_scores(shared.ring[stage].k);
        if (base + kPolicy.tile > end) tile.mask_tail(end - base);
        tile.update_softmax(params.attention.scale_log2);
      }
      arch::cp_async_wait<2 * (kStages - 1)>();
      arch::block_barrier();
      if (has_rows) tile.accumulate_values(shared.ring[stage].v);
      stage = (stage + 1) % kStages;
    }
    arch::cp_async_wait<0>();
  }

  /// Each thread holds every eighth component of its rows: scattered 4-byte stores, 32 B a quad of
  /// rows. The partials are small next to the KV of a shared segment.
  static ASSAY_DEVICE void store(const CascadeParams &params, const CascadeWork &work, int warp_row,
                                 const Tile &tile) {
    const AttentionParams &attention = params.attention;
    const int64_t level_split = work.level * params.splits + work.split;
    ASSAY_UNROLL
    for (int n = 0; n < kPolicy.row_tiles; ++n)
      ASSAY_UNROLL
    for (int j = 0; j < 2; ++j) {
      const int row = warp_row + Tile::row_index(n, j);
      if (row >= work.num_rows) continue;
      const int64_t request = work.first_request + row / attention.group_size;
      const int64_t index = (level_split * attention.batch + request) * attention.num_qo_heads +
                            head_of(attention, work, row);
      using Number = typename Tile::Number;
      typename Tile::State state = tile.row(n, j);
      if (arch::lane_id() < 4)
        arch::global_store(words_of<Number>(params.lse_accum) + index,
                           state.lse2(attention.scale_log2));
      state.normalize();
      ASSAY_UNROLL
      for (int i = 0; i < 2 * Tile::kDimTiles; ++i)
        arch::global_store(words_of<Number>(params.o_accum) + index * kHeadDim + Tile::component(i),
                           state.o[i]);
    }
  }
};

/// Grid: per level tile slots * splits * kv heads.
template <class E, int kHeadDim>
ASSAY_KERNEL((CascadeCore<E, kHeadDim>::kThreads), 1)
cascade_partial(const ASSAY_GRID_CONSTANT CascadeParams params) {
  using Core = CascadeCore<E, kHeadDim>;
  CascadeWork work;
  if (Core::locate(params, arch::block_idx_x(), work)) Core::run(params, work);
}

inline constexpr int kCascadeMergeThreads = 128;

/// Grid: one thread per (request, query head, eight components): merges the states of all levels
/// and splits in order.
template <class E, int kHeadDim>
ASSAY_KERNEL(kCascadeMergeThreads, 1)
cascade_merge(const ASSAY_GRID_CONSTANT CascadeParams params) {
  constexpr int kSlices = kHeadDim / 8;
  using Number = typename arch::Arithmetic<E>::Number;
  const AttentionParams &attention = params.attention;
  const int64_t index = int64_t{arch::block_idx_x()} * kCascadeMergeThreads + arch::thread_idx();
  const int64_t row = index / kSlices;
  const int dim = static_cast<int>(index % kSlices) * 8;
  const int64_t rows = int64_t{attention.batch} * attention.num_qo_heads;
  if (row >= rows) return;
  const int request = static_cast<int>(row / attention.num_qo_heads);
  const int head = static_cast<int>(row % attention.num_qo_heads);
  // A level may leave a request uncovered; nothing was written for it then.
  const auto covered = [&](int level) {
    const int32_t *indptr = params.levels[level].segment_indptr;
    return request >= arch::global_load_readonly(indptr) &&
           request < arch::global_load_readonly(indptr + params.levels[level].kv.rows);
  };
  const auto merged = merge_rows(
      params.num_levels * params.splits, 1.0f, 1.0f,
      [&](int i) {
        return covered(i / params.splits)
                   ? arch::global_load(words_of<Number>(params.lse_accum) + i * rows + row)
                   : Number(arch::neg_infinity());
      },
      [&](int i, Number(&o)[8]) {
        Pack8<Number>::load(words_of<Number>(params.o_accum) + (i * rows + row) * kHeadDim + dim)
            .unpack(o);
      });
  store_final<E>(attention, request, head, dim, merged.o, merged.lse);
}

} // namespace assay::ASSAY_TARGET
