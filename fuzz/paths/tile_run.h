// SPDX-License-Identifier: Apache-2.0
// Runs a TileProgram on the kernels' AttentionTile: one warp of the executor.
#pragma once

#include <string>

#include "fuzz/paths/tile_program.h"

namespace assay::fuzz {

inline constexpr int kHolders = 8; // lanes that hold a row: the same m and d, other components of o

/// What a query row's state holds.
struct TileRow {
  float m_after[kMaxSteps][kHolders]; // the running maximum after each tile
  float d[kHolders], lse2[kHolders];
  float o[kTileDims], normalized[kTileDims];
};

struct TileResult {
  TileRow rows[kMaxRows];
  std::string violation; // a hazard; empty: none
};

void run_tile_program(const TileProgram &program, TileResult &result);

} // namespace assay::fuzz
