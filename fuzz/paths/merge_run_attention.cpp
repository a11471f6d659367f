// SPDX-License-Identifier: Apache-2.0
// The merges inside attention kernels: warps of a block, splits of v2, levels of a cascade.
#include <cmath>
#include <cstring>

#include "fuzz/paths/merge_run.h"
#include "kernels/blocks/split_kv.cuh"
#include "kernels/cascade/cascade_merge.cuh"
#include "kernels/common/block_merge.cuh"
#include "kernels/simt/launch.h"

namespace assay::fuzz {
namespace {

namespace arch = n_simt::arch;

constexpr int kDims = 32, kRows = 8, kWarps = 2, kMaxWarps = 4, kHeads = 4, kCascadeDims = 64;
constexpr int kMaxPartials = 8;

/// What publish_partials needs of a decode core, with a block of two warps.
struct SmallCore {
  using Number = float;
  static constexpr int kRows = fuzz::kRows, kHeadDim = kDims, kWarps = fuzz::kWarps;
  static constexpr bool kFeatures = false;
  struct SharedStorage {
    n_simt::BlockMergeStorage<float, kDims, fuzz::kRows, fuzz::kWarps> merge;
  };
};

/// One row for every thread that merges: the first of its kind is kept, the others must equal it.
class Rows {
public:
  explicit Rows(MergeResult &result) : result_(result) {}

  void publish(float lse, const float (&o)[kMergeDims]) {
    if (first_) {
      first_ = false;
      result_.lse = lse;
      std::memcpy(result_.o.data(), o, sizeof o);
      return;
    }
    bool same = is_same(lse, result_.lse);
    for (size_t c = 0; c < kMergeDims; ++c)
      same = same && is_same(o[c], result_.o[c]);
    if (!same) result_.violation = "rows of the same states differ";
  }

private:
  static bool is_same(float a, float b) { return a == b || (a != a && b != b); }

  MergeResult &result_;
  bool first_ = true;
};

void check_status(simt::LaunchStatus status, MergeResult &result) {
  if (status != simt::LaunchStatus::kOk) result.violation = "the executor reports a hazard";
}

} // namespace

/// States of warps in rows 0 and 4, the second with half of each component: the low part.
void run_block(const MergeProgram &program, MergeResult &result) {
  struct Shared {
    n_simt::BlockMergeStorage<float, kDims, kRows, kMaxWarps> merge;
  };
  const auto thread = [&] {
    auto &storage = arch::shared_storage<Shared>().merge;
    for (int w = 0; w < program.count; ++w)
      for (const int row : {0, 4}) {
        const MergeState &state = program.states[static_cast<size_t>(w)];
        arch::shared_store(&storage.m[w][row], state.lse);
        arch::shared_store(&storage.d[w][row], state.mass);
        for (int c = 0; c < kMergeDims; ++c)
          arch::shared_store(&storage.o[w][row][storage.index(row, c)],
                             row == 0 ? state.o[static_cast<size_t>(c)]
                                      : state.o[static_cast<size_t>(c)] / 2);
      }
    auto slice = n_simt::merge_published<kMaxWarps, kMergeDims>(storage, 0, program.count, 0, 0,
                                                                program.scale);
    if (program.natural)
      n_simt::add_low_part(slice, n_simt::merge_published<kMaxWarps, kMergeDims>(
                                      storage, 0, program.count, 4, 0, program.scale));
    result.m = slice.m;
    result.d = slice.d;
    std::memcpy(result.sum.data(), slice.o, sizeof slice.o);
    result.lse = slice.lse2(program.scale);
    slice.normalize();
    std::memcpy(result.o.data(), slice.o, sizeof slice.o);
  };
  check_status(simt::launch(nullptr, {.block = 1, .shared_bytes = sizeof(Shared)}, thread), result);
}

void run_splits(const MergeProgram &program, MergeResult &result) {
  using Slice = n_simt::AttentionState<float, kMergeDims>;
  alignas(16) static float o[kMaxPartials][kRows][kDims];
  static float lse[kMaxPartials][kRows];
  for (int i = 0; i < program.count; ++i)
    for (int row = 0; row < kRows; ++row) {
      const MergeState &state = program.states[static_cast<size_t>(i)];
      lse[i][row] = row < program.rows ? state.lse : NAN;
      for (int c = 0; c < kDims; ++c)
        o[i][row][c] = row < program.rows ? state.o[static_cast<size_t>(c % kMergeDims)] : NAN;
    }
  SplitKvParams params{};
  params.partial = {&o[0][0][0], &lse[0][0]};
  params.plan.shape.head_tiles = 1;
  params.plan.shape.splits = program.count;
  WorkItem item{};
  item.num_splits = program.count;
  item.next_slot = 1;
  Rows rows(result);
  const auto thread = [&] {
    const n_simt::Partials<kRows> partials{params, item, 0, program.rows};
    n_simt::publish_partials<SmallCore>(partials);
    arch::block_barrier();
    const auto &storage = arch::shared_storage<SmallCore::SharedStorage>().merge;
    const int thread = static_cast<int>(arch::thread_idx());
    const int row = thread / (kDims / kMergeDims), dim = thread % (kDims / kMergeDims) * kMergeDims;
    if (row >= program.rows) return;
    Slice slice = n_simt::merge_published<kWarps, kMergeDims>(storage, 0, kWarps, row, dim, 1.0f);
    const float lse2 = slice.lse2(1.0f);
    slice.normalize();
    rows.publish(lse2, slice.o);
  };
  check_status(
      simt::launch(nullptr,
                   {.block = 32 * kWarps, .shared_bytes = sizeof(SmallCore::SharedStorage)},
                   thread),
      result);
}

void run_cascade(const MergeProgram &program, MergeResult &result) {
  alignas(16) static float o[kMaxPartials][kHeads][kCascadeDims];
  static float lse[kMaxPartials][kHeads];
  alignas(16) static arch::bf16 out[kHeads][kCascadeDims];
  static float out_lse[kHeads];
  for (int i = 0; i < program.count; ++i) {
    const MergeState &state = program.states[static_cast<size_t>(i)];
    const bool stored = program.is_covered(i) && i != program.own;
    for (int head = 0; head < kHeads; ++head) {
      lse[i][head] = stored ? state.lse : NAN;
      for (int c = 0; c < kCascadeDims; ++c)
        o[i][head][c] = stored ? state.o[static_cast<size_t>(c % kMergeDims)] : NAN;
    }
  }
  n_simt::CascadeParams params{};
  params.attention.batch = 1;
  params.attention.num_qo_heads = kHeads;
  params.attention.out = out;
  params.attention.out_stride_head = kCascadeDims;
  params.attention.lse = out_lse;
  params.attention.lse_stride_head = 1;
  params.attention.lse_unit = 1.0f;
  params.num_levels = program.levels;
  params.num_states = program.count;
  for (int level = 0; level < program.levels; ++level)
    params.levels[level].first_state = program.first_state(level);
  params.o_accum = &o[0][0][0];
  params.lse_accum = &lse[0][0];
  const MergeState &own_state = program.states[static_cast<size_t>(std::max(program.own, 0))];
  float own[kMergeDims];
  std::copy(own_state.o.begin(), own_state.o.end(), own);
  const auto thread = [&] {
    const int lane = static_cast<int>(arch::lane_id());
    n_simt::finish_cascade_row<arch::bf16, kCascadeDims>(
        params, true, program.covering, 0, lane / 8, lane % 8 * 8,
        n_simt::OwnState<float>{program.own, own_state.lse, own});
  };
  check_status(simt::launch(nullptr, {.block = 32}, thread), result);
  Rows rows(result);
  for (int head = 0; head < kHeads; ++head)
    for (int dim = 0; dim < kCascadeDims; dim += kMergeDims) {
      float row[kMergeDims];
      for (int c = 0; c < kMergeDims; ++c)
        row[c] = arch::to_float(out[head][dim + c]);
      rows.publish(out_lse[head], row);
    }
}

} // namespace assay::fuzz
