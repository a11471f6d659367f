// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/tile_run.h"

#include <bit>
#include <cstring>

#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/common/attention_tile.cuh"
#include "kernels/simt/launch.h"

namespace assay::fuzz {
namespace {

namespace arch = n_simt::arch;

template <class Element, int kTokens, int kRowTiles, bool kTwoParts>
class TileRunner {
  using Types = n_simt::DecodeTypes<Element, Element>;
  using Tile = n_simt::AttentionTile<Types, kTileDims, kTokens, kRowTiles, kTwoParts>;
  using Layout = typename Tile::Layout;
  static constexpr int kChunkElements = 8;

  struct SharedStorage {
    arch::Vec4 v[kTokens * Layout::kChunks];
  };

public:
  static void run(const TileProgram &program, TileResult &result) {
    TileRunner runner{program, result};
    const auto status = simt::launch(nullptr, {.block = 32, .shared_bytes = sizeof(SharedStorage)},
                                     [&runner] { runner.thread(); });
    if (status != simt::LaunchStatus::kOk) result.violation = "the executor reports a hazard";
  }

private:
  TileRunner(const TileProgram &program, TileResult &result) : program_(program), result_(result) {}

  void thread() {
    auto &shared = arch::shared_storage<SharedStorage>();
    Tile tile;
    tile.clear();
    if constexpr (kTwoParts) tile.use_two_parts(true);
    for (int i = 0; i < program_.count; ++i) {
      const TileStep &step = program_.steps[static_cast<size_t>(i)];
      store_values(step, shared);
      arch::warp_barrier();
      tile.for_each_score([&](int n, int j, int token, float &score) {
        score = step.scores[Tile::row_index(n, j)][token];
      });
      if (step.live < kTokens) tile.mask_tail(step.live);
      tile.update_softmax(program_.scale);
      tile.accumulate_values(shared.v);
      arch::warp_barrier();
      for_each_row(
          [&](int n, int j, TileRow &row) { row.m_after[i][holder()] = tile.row(n, j).m; });
    }
    tile.reduce_sums();
    for_each_row([&](int n, int j, TileRow &row) { publish_row(tile.row(n, j), row); });
  }

  static void store_values(const TileStep &step, SharedStorage &shared) {
    for (int i = static_cast<int>(arch::lane_id()); i < kTokens * Layout::kChunks; i += 32) {
      const int token = i / Layout::kChunks, chunk = i % Layout::kChunks;
      arch::Vec4 vector;
      std::memcpy(&vector, &step.values[token][chunk * kChunkElements], sizeof vector);
      arch::shared_store(&shared.v[Layout::index(token, chunk)], vector);
    }
  }

  template <class F>
  void for_each_row(F f) {
    for (int n = 0; n < kRowTiles; ++n)
      for (int j = 0; j < 2; ++j)
        f(n, j, result_.rows[Tile::row_index(n, j)]);
  }

  void publish_row(typename Tile::State state, TileRow &row) {
    row.d[holder()] = state.d;
    row.lse2[holder()] = state.lse2(program_.scale);
    for (int i = 0; i < 2 * Tile::kDimTiles; ++i)
      row.o[Tile::component(i)] = state.o[i];
    state.normalize();
    for (int i = 0; i < 2 * Tile::kDimTiles; ++i)
      row.normalized[Tile::component(i)] = state.o[i];
  }

  /// Which of a row's lanes this one is.
  static int holder() { return static_cast<int>(arch::lane_id()) / 4; }

  const TileProgram &program_;
  TileResult &result_;
};

} // namespace

void run_tile_program(const TileProgram &program, TileResult &result) {
  result.violation.clear();
  switch (program.form) {
  case 0:
    return TileRunner<arch::bf16, 16, 1, false>::run(program, result);
  case 1:
    return TileRunner<arch::fp16, 16, 1, false>::run(program, result);
  case 2:
    return TileRunner<arch::bf16, 32, 2, false>::run(program, result);
  default:
    return TileRunner<arch::bf16, 16, 1, true>::run(program, result);
  }
}

} // namespace assay::fuzz
