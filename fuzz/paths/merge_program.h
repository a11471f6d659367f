// SPDX-License-Identifier: Apache-2.0
// What fuzz_merge runs: states of one query row for one of the kernels' merges.
#pragma once

#include <array>
#include <cstdint>

#include "fuzz/byte_reader.h"

namespace assay::fuzz {

enum class MergeForm : uint8_t {
  kPairFp32, // merge_pair of merge_state
  kPairBf16,
  kSink,    // join_sink: state 0 is the row, the LSE of state 1 the sink
  kFew,     // merge_few of merge_states
  kMany,    // MergeStatesBlock of merge_states
  kBlock,   // merge_published and add_low_part: warps of a block, not normalised
  kSplits,  // publish_partials of paged_attention_v2, then merge_published
  kCascade, // finish_cascade_row
  kCount
};

inline constexpr int kMergeDims = 8, kMaxStates = 40, kMaxLevels = 4;

struct MergeState {
  float lse = 0;  // kBlock: the maximum
  float mass = 1; // kBlock alone has others
  std::array<float, kMergeDims> o = {};
};

struct MergeProgram {
  MergeForm form;
  bool natural;      // LSEs in natural units where the merge has a choice
  float scale;       // kBlock
  int rows;          // kSplits: 1 to 8 that exist
  int own;           // kCascade: the state in registers, -1: none
  int levels;        // kCascade
  uint32_t covering; // kCascade: levels that cover the row, a bit each
  int count;
  std::array<MergeState, kMaxStates> states;

  /// kCascade: the first state of a level.
  int first_state(int level) const { return count * level / levels; }
  bool is_covered(int state) const;
};

/// Total.
void read_merge_program(Input input, MergeProgram &program);

} // namespace assay::fuzz
