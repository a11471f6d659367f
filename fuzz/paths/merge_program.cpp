// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/merge_program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fuzz/paths/tile_program.h"

namespace assay::fuzz {
namespace {

/// What takes a microsecond comes twice.
MergeForm form_of(uint8_t tag) {
  constexpr int kForms = static_cast<int>(MergeForm::kCount);
  constexpr std::array<MergeForm, 3> kAgain = {MergeForm::kPairFp32, MergeForm::kSink,
                                               MergeForm::kBlock};
  const int form = tag % (kForms + static_cast<int>(kAgain.size()));
  return form < kForms ? static_cast<MergeForm>(form) : kAgain[static_cast<size_t>(form - kForms)];
}

int most_states(MergeForm form) {
  constexpr std::array<int, static_cast<size_t>(MergeForm::kCount)> kMax = {2,          2, 2, 4,
                                                                            kMaxStates, 4, 8, 8};
  return kMax[static_cast<size_t>(form)];
}

/// A fill, with signs and leading bits of the significand of each component by a pattern, or one
/// component of its own.
void read_o(ByteReader &in, MergeState &state) {
  state.o.fill(in.number());
  const uint32_t pattern = in.byte();
  if (pattern >= 192) {
    state.o[pattern % kMergeDims] = in.number();
  } else if (pattern > 0) {
    const bool normal = std::isnormal(state.o[0]);
    for (uint32_t c = 0; c < kMergeDims; ++c) {
      const uint32_t noise = (pattern * 0x9e3779b9u) ^ (c * 0x85ebca6bu);
      const uint32_t flipped = (noise ^ noise >> 13) & (normal ? 0x80700000u : 0x80000000u);
      state.o[c] = std::bit_cast<float>(std::bit_cast<uint32_t>(state.o[c]) ^ flipped);
    }
  }
}

/// What a finished row has: 0 without keys, NaN beside an LSE that is NaN.
void as_row(MergeState &state) {
  if (state.lse == -INFINITY) state.o.fill(0);
  if (state.lse != state.lse) state.o.fill(NAN);
}

/// What AttentionTile leaves: a maximum is a number; a warp without keys has o = 0 and d = 0, one
/// that met a NaN score has NaN in both.
void as_warp(MergeState &state) {
  if (state.lse != state.lse) {
    state.lse = -INFINITY;
    state.mass = NAN;
  }
  if (state.mass != state.mass) return state.o.fill(NAN);
  if (state.lse != -INFINITY) return;
  state.mass = 0;
  state.o.fill(0);
}

void read_state(ByteReader &in, MergeForm form, MergeState &state) {
  state = {};
  state.lse = in.number();
  if (form == MergeForm::kBlock) state.mass = std::fabs(in.number());
  read_o(in, state);
  if (form == MergeForm::kBlock) as_warp(state);
}

} // namespace

bool MergeProgram::is_covered(int state) const {
  int level = 0;
  while (level + 1 < levels && first_state(level + 1) <= state)
    ++level;
  return (covering >> level & 1) != 0;
}

void read_merge_program(Input input, MergeProgram &program) {
  ByteReader in(input);
  program.form = form_of(in.byte());
  const int most = most_states(program.form);
  program.natural = in.byte() % 2 != 0;
  program.scale = program.form == MergeForm::kBlock ? read_scale(in) : 1.0f;
  program.rows = 1 + in.byte() % 8;
  const bool repeats = most > 4;
  const int wanted = repeats ? in.byte() % (most + 1) : 1;
  const bool cascade = program.form == MergeForm::kCascade;
  program.levels = cascade ? 1 + in.byte() % kMaxLevels : 1;
  program.covering = cascade ? ~uint32_t{in.byte()} & ((1u << program.levels) - 1) : 1;
  program.count = 0;
  do
    read_state(in, program.form, program.states[static_cast<size_t>(program.count++)]);
  while (!in.done() && program.count < most);
  const int read = program.count;
  for (; program.count < wanted; ++program.count)
    program.states[static_cast<size_t>(program.count)] =
        program.states[static_cast<size_t>(program.count % read)];
  if (program.form == MergeForm::kSink) as_row(program.states[0]);
  if (most <= 2)
    for (; program.count < 2; ++program.count)
      program.states[1] = {};
  program.levels = std::min(program.levels, program.count); // a level has a state
  program.covering &= (1u << program.levels) - 1;
  program.own = cascade && program.rows > 4 ? program.count - 1 : -1;
  if (program.own >= 0) program.covering |= 1u << (program.levels - 1);
}

} // namespace assay::fuzz
