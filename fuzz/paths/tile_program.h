// SPDX-License-Identifier: Apache-2.0
// What fuzz_tile runs: a few tiles of scores and values, for one of the forms that AttentionTile
// has.
#pragma once

#include <array>
#include <cstdint>

#include "fuzz/byte_reader.h"

namespace assay::fuzz {

struct TileForm {
  bool fp16;      // elements of V and of P; bf16 otherwise
  int tokens;     // keys of a tile
  int rows;       // query rows
  bool two_parts; // rows 4 to 7 hold what rounding takes from the weights of rows 0 to 3
};
inline constexpr std::array<TileForm, 4> kTileForms = {
    {{false, 16, 8, false}, {true, 16, 8, false}, {false, 32, 16, false}, {false, 16, 8, true}}};
inline constexpr int kTileDims = 32, kMaxTokens = 32, kMaxRows = 16, kMaxSteps = 4;

/// One tile: keys from `live` on are masked, whatever their scores.
struct TileStep {
  int live;
  float scores[kMaxRows][kMaxTokens];
  uint16_t values[kMaxTokens][kTileDims]; // elements of the form
};

struct TileProgram {
  int form; // index in kTileForms
  float scale;
  int count; // number of steps, 1 to kMaxSteps
  std::array<TileStep, kMaxSteps> steps;

  const TileForm &shape() const { return kTileForms[static_cast<size_t>(form)]; }
};

/// Total. A step is a fill of scores and one of values, each with a pattern over the tile, and up
/// to 15 and 7 places with a number of their own.
void read_tile_program(Input input, TileProgram &program);

/// One of the scales that calls have, or any number.
float read_scale(ByteReader &in);

} // namespace assay::fuzz
