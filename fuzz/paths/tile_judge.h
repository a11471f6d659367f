// SPDX-License-Identifier: Apache-2.0
// What a tile's states must be (assertions: fuzz_tile.cpp).
#pragma once

#include <string>

#include "fuzz/paths/tile_program.h"
#include "fuzz/paths/tile_run.h"

namespace assay::fuzz {

/// The first thing wrong with the states, or an empty string.
std::string tile_violation(const TileProgram &program, const TileResult &result);

/// Decodes, runs and judges.
std::string check_tile(Input input);

} // namespace assay::fuzz
