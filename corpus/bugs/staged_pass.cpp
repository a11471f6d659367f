// SPDX-License-Identifier: Apache-2.0
// A pass over the keys of a half: copies one tile ahead, four lanes a row.
#include <algorithm>
#include <cmath>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/staged_pass.h"
#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/convert.cuh"
#include "kernels/arch/grid_order.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"

namespace assay::bugs {
namespace {

/// A lane's share of a query row: all of q, every fourth dim-block of o, every fourth key's mass.
struct Lane {
  int row, lane, head; ///< row of the pass
  bool there;
  float q[256] = {}, o[64] = {};
  float m = kMinusInf, l = 0;
};

float element(assay_dtype dtype, uint16_t bits) {
  return dtype == ASSAY_BF16 ? arch::to_float(arch::bf16{bits}) : arch::to_float(arch::fp16{bits});
}

/// Eight elements of shared memory.
void load_shared(const assay_paged_params &p, const uint16_t *at, float *out) {
  const auto word = arch::shared_load(reinterpret_cast<const arch::Vec4 *>(at));
  uint16_t bits[kPiece];
  std::memcpy(bits, &word, sizeof(word));
  for (int i = 0; i < kPiece; ++i)
    out[i] = element(p.dtype, bits[i]);
}

struct Source {
  const void *pool;
  int64_t page, token, head;
};

const void *address(const StagedBlock &block, const Source &s, int key, int dim) {
  const assay_paged_kv &kv = block.p->kv;
  const int32_t *table = kv.page_table + block.request * kv.page_table_stride;
  const int64_t id = arch::global_load(table + key / kv.page_size);
  return static_cast<const uint16_t *>(s.pool) + id * s.page + key % kv.page_size * s.token +
         block.kv_head * s.head + dim;
}

/// Whether a value at or past the end of the half is copied all the same: its page is there.
bool copied_past_the_end(const StagedBlock &block, int key) {
  const int page_size = block.p->kv.page_size;
  const int pages = (block.length + page_size - 1) / page_size;
  return is(Bug::values_past_the_end_copied) && key < pages * page_size;
}

void copy_piece(const StagedBlock &block, const Source &s, uint16_t *to, int key, int dim,
                bool valid) {
  if (!valid && is(Bug::copies_past_the_end_skipped)) return;
  arch::cp_async_16(to, valid ? address(block, s, key, dim) : s.pool, valid);
}

float sum_of_row(float x) {
  x += arch::shfl_xor(x, 1, arch::kFullMask);
  x += arch::shfl_xor(x, 2, arch::kFullMask);
  if (is(Bug::row_sum_over_eight_lanes)) x += arch::shfl_xor(x, 4, arch::kFullMask);
  return x;
}

/// By way of the scratch that takes the weights next.
float maximum_of_row(const StagedBlock &block, const Lane &lane, float x) {
  float *scratch = block.shared->weights[lane.row];
  arch::shared_store(scratch + lane.lane, x);
  arch::warp_barrier();
  for (int i = 0; i < kLanesOfRow; ++i)
    x = std::max(x, arch::shared_load(scratch + i));
  if (!is(Bug::maxima_overwritten_by_weights)) arch::warp_barrier();
  return x;
}

float score(const StagedBlock &block, const Lane &lane, int stage, int key) {
  float k[kPiece], sum = 0;
  for (int dim = 0; dim < block.p->head_dim; dim += kPiece) {
    load_shared(*block.p, &block.shared->k[stage][key][dim], k);
    for (int i = 0; i < kPiece; ++i)
      sum = std::fma(lane.q[dim + i], k[i], sum);
  }
  return sum * (block.p->sm_scale * kLog2E);
}

void rescale(Lane &lane, float m) {
  const float alpha = lane.m == kMinusInf ? 0.0f : std::exp2(lane.m - m);
  lane.m = m;
  lane.l *= alpha;
  for (float &o : lane.o)
    o *= alpha;
}

/// Weights of the lane's keys, by way of shared memory to the other lanes of the row.
void add_weights(const StagedBlock &block, Lane &lane, int tile, int first) {
  constexpr int kOwn = kStepKeys / kLanesOfRow;
  float x[kOwn];
  for (int i = 0; i < kOwn; ++i) {
    const int key = first + i * kLanesOfRow + lane.lane;
    const bool seen = block.begin + tile * kTileKeys + key < block.end;
    x[i] = seen ? score(block, lane, tile & 1, key) : kMinusInf;
  }
  rescale(lane, std::max(lane.m, maximum_of_row(block, lane, std::max(x[0], x[1]))));
  for (int i = 0; i < kOwn; ++i) {
    const float p = x[i] == kMinusInf ? 0.0f : std::exp2(x[i] - lane.m);
    lane.l += p;
    arch::shared_store(&block.shared->weights[lane.row][i * kLanesOfRow + lane.lane], p);
  }
}

void add_values(const StagedBlock &block, Lane &lane, int tile, int first) {
  const int dims = block.p->head_dim / kLanesOfRow;
  for (int key = 0; key < kStepKeys; ++key) {
    const float p = arch::shared_load(&block.shared->weights[lane.row][key]);
    for (int dim = 0; dim < dims; dim += kPiece) {
      float v[kPiece];
      load_shared(*block.p, &block.shared->v[tile & 1][first + key][lane.lane * dims + dim], v);
      for (int i = 0; i < kPiece; ++i)
        lane.o[dim + i] = std::fma(p, v[i], lane.o[dim + i]);
    }
  }
}

void add_tile(const StagedBlock &block, Lane &lane, int tile) {
  for (int first = 0; first < kTileKeys; first += kStepKeys) {
    add_weights(block, lane, tile, first);
    arch::warp_barrier();
    add_values(block, lane, tile, first);
    // The maxima of the next step lie where others may still read the weights of this one.
    if (!is(Bug::weights_overwritten_next_tile)) arch::warp_barrier();
  }
}

void store_partial(const StagedBlock &block, const StagedCall &call, Lane &lane) {
  const float l = sum_of_row(lane.l);
  if (!lane.there) return;
  const int64_t slot = call.slot(block.request, block.half, lane.head);
  const int dims = block.p->head_dim / kLanesOfRow;
  const bool empty = lane.m == kMinusInf && l == 0;
  for (int i = 0; i < dims; ++i)
    lane.o[i] = empty ? 0.0f : lane.o[i] * (1.0f / l);
  store_row(call.partial_o, slot * block.p->head_dim + lane.lane * dims, ASSAY_FP32, dims, lane.o);
  if (lane.lane == 0)
    arch::global_store(call.partial_lse + slot, empty ? kMinusInf : lane.m + std::log2(l));
}

void load_queries(const StagedBlock &block, Lane &lane) {
  const assay_paged_params &p = *block.p;
  if (lane.there)
    load_row(p.q, block.request * p.q_stride_batch + lane.head * p.q_stride_head, p.dtype,
             p.head_dim, lane.q);
}

int tiles_of_this_warp(const StagedBlock &block) {
  // The second warp takes the number of the split with its flags for the number of the split.
  if (is(Bug::roles_disagree_on_empty_split) && arch::warp_id() == 1 && block.length > 0)
    return std::max(1, block.tiles());
  return block.tiles();
}

/// The block's keys and values of a tile; the copies of a thread are not yet awaited.
void copy_tile(const StagedBlock &block, int tile) {
  const assay_paged_kv &kv = block.p->kv;
  const Source k{kv.k, kv.k_stride_page, kv.k_stride_token, kv.k_stride_head};
  const Source v{kv.v, kv.v_stride_page, kv.v_stride_token, kv.v_stride_head};
  const int pieces = block.p->head_dim / kPiece, stage = tile & 1;
  for (int i = static_cast<int>(arch::thread_idx()); i < kTileKeys * pieces; i += kStagedThreads) {
    const int slot = i / pieces, dim = i % pieces * kPiece;
    const int key = block.begin + tile * kTileKeys + slot;
    const bool valid = key < block.end;
    copy_piece(block, k, &block.shared->k[stage][slot][dim], key, dim, valid);
    copy_piece(block, v, &block.shared->v[stage][slot][dim], key, dim,
               valid || copied_past_the_end(block, key));
  }
}

} // namespace

void attend_pass(const StagedBlock &block, const StagedCall &call, int first) {
  const int thread = static_cast<int>(arch::thread_idx());
  Lane lane;
  lane.row = thread / kLanesOfRow;
  lane.lane = thread % kLanesOfRow;
  lane.head = block.kv_head * block.group() + first + lane.row;
  lane.there = first + lane.row < block.group();
  if (is(Bug::queries_before_the_grid_in_front)) load_queries(block, lane);
  arch::wait_for_previous_grid();
  if (!is(Bug::queries_before_the_grid_in_front)) load_queries(block, lane);
  const int tiles = tiles_of_this_warp(block);
  if (tiles > 0) copy_tile(block, 0);
  arch::cp_async_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) copy_tile(block, tile + 1);
    arch::cp_async_commit();
    arch::cp_async_wait<1>();
    // What the other warp has copied is not there for this one until they meet.
    is(Bug::copies_awaited_by_warp) ? arch::warp_barrier() : arch::block_barrier();
    add_tile(block, lane, tile);
    if (is(Bug::slot_released_before_it_is_read)) continue;
    const bool idle = first + static_cast<int>(arch::warp_id()) * 8 >= block.group();
    if (is(Bug::barrier_in_part_of_the_warps) && idle) continue;
    arch::block_barrier();
  }
  store_partial(block, call, lane);
}

} // namespace assay::bugs
