// SPDX-License-Identifier: Apache-2.0
// Runs a MergeProgram on the kernels' own merges.
#pragma once

#include <string>

#include "fuzz/paths/merge_program.h"

namespace assay::fuzz {

struct MergeResult {
  float lse;                       // in the unit of the states
  std::array<float, kMergeDims> o; // normalised
  // kBlock: before.
  float m, d;
  std::array<float, kMergeDims> sum;
  std::string violation; // a hazard, or rows of the same states that differ; empty: neither
};

void run_merge_program(const MergeProgram &program, MergeResult &result);

/// What run_merge_program is made of: merges of one thread or none, of a warp, of a block.
void run_pair(const MergeProgram &program, MergeResult &result);
void run_sink(const MergeProgram &program, MergeResult &result);
void run_stored(const MergeProgram &program, MergeResult &result);
void run_block(const MergeProgram &program, MergeResult &result);
void run_splits(const MergeProgram &program, MergeResult &result);
void run_cascade(const MergeProgram &program, MergeResult &result);

} // namespace assay::fuzz
