// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/tile_program.h"

#include "kernels/arch/convert.cuh"

namespace assay::fuzz {
namespace {

/// A number that looks random, the same for the same place of a pattern.
uint32_t noise(int pattern, int row, int column) {
  const auto part = [](int n) { return static_cast<uint32_t>(n); };
  uint32_t x = part(pattern) * 0x9e3779b9u + part(row) * 0x85ebca6bu + part(column) * 0xc2b2ae35u;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  return x ^ x >> 12;
}

uint16_t element_bits(bool fp16, float x) {
  namespace arch = n_simt::arch;
  return fp16 ? arch::from_float<arch::fp16>(x).bits : arch::from_float<arch::bf16>(x).bits;
}

/// Two bytes for any bit pattern, one otherwise.
uint16_t read_element(ByteReader &in, bool fp16) {
  const uint16_t exponent = fp16 ? 0x7c00 : 0x7f80;
  const uint16_t special[] = {0,
                              0x8000,
                              exponent,                                 // inf
                              static_cast<uint16_t>(exponent | 0x8000), // -inf
                              static_cast<uint16_t>(exponent | 0x40),   // NaN
                              static_cast<uint16_t>(exponent - 1),      // largest
                              static_cast<uint16_t>((exponent - 1) | 0x8000),
                              1,                                          // least subnormal
                              static_cast<uint16_t>(fp16 ? 0x3ff : 0x7f), // largest subnormal
                              static_cast<uint16_t>(fp16 ? 0x400 : 0x80), // least normal
                              static_cast<uint16_t>(exponent - 0x800)};
  const uint8_t tag = in.byte();
  if (tag >= 128) return static_cast<uint16_t>(in.byte() | in.byte() << 8);
  if (tag >= 32) return element_bits(fp16, static_cast<float>(tag - 80) / 4);
  return tag < std::size(special) ? special[tag] : uint16_t{0};
}

void read_scores(ByteReader &in, const TileForm &form, TileStep &step) {
  const float fill = in.number();
  const int pattern = in.byte();
  const float spread = pattern == 0 ? 0.0f : in.number();
  for (int row = 0; row < form.rows; ++row)
    for (int token = 0; token < form.tokens; ++token) {
      const auto steps_down = static_cast<float>(noise(pattern, row, token) % 8);
      step.scores[row][token] = pattern == 0 ? fill : fill - spread * steps_down;
    }
}

/// The pattern flips signs and leading bits of the significand, and keeps exponents.
void read_values(ByteReader &in, const TileForm &form, TileStep &step) {
  const uint16_t fill = read_element(in, form.fp16);
  const int pattern = in.byte();
  const uint16_t exponent = form.fp16 ? 0x7c00 : 0x7f80;
  const bool normal = (fill & exponent) != 0 && (fill & exponent) != exponent;
  const uint32_t varied = pattern == 0 ? 0u : normal ? (form.fp16 ? 0x8380u : 0x8070u) : 0x8000u;
  for (int token = 0; token < form.tokens; ++token)
    for (int dim = 0; dim < kTileDims; ++dim)
      step.values[token][dim] = static_cast<uint16_t>(fill ^ (noise(pattern, token, dim) & varied));
}

/// A place of the scores: a token of some of eight rows.
void read_score_spot(ByteReader &in, const TileForm &form, TileStep &step) {
  const int place = in.byte(), rows = in.byte();
  const float score = in.number();
  const int first_row = place / 64 * 8 % form.rows;
  for (int row = 0; row < 8; ++row)
    if (rows == 0 || (rows >> row & 1) != 0)
      step.scores[first_row + row][place % form.tokens] = score;
}

void read_step(ByteReader &in, const TileForm &form, TileStep &step) {
  const int spots = in.byte();
  step.live = form.tokens - in.byte() % (form.tokens + 1);
  read_scores(in, form, step);
  read_values(in, form, step);
  for (int i = 0; i < spots % 16; ++i)
    read_score_spot(in, form, step);
  for (int i = 0; i < spots / 16 % 8; ++i) {
    const int token = in.byte() % form.tokens, dim = in.byte() % kTileDims;
    step.values[token][dim] = read_element(in, form.fp16);
  }
  if (!form.two_parts) return;
  for (int row = 4; row < 8; ++row)
    for (int token = 0; token < form.tokens; ++token)
      step.scores[row][token] = step.scores[row - 4][token];
}

} // namespace

float read_scale(ByteReader &in) {
  constexpr float kScales[] = {1.0f, 1.44269504f, 1.44269504f / 8, 1.44269504f / 16};
  const uint8_t tag = in.byte();
  return tag < 4 ? kScales[tag] : in.number();
}

void read_tile_program(Input input, TileProgram &program) {
  ByteReader in(input);
  program.form = in.byte() % static_cast<int>(kTileForms.size());
  program.scale = read_scale(in);
  program.count = 0;
  do
    read_step(in, program.shape(), program.steps[static_cast<size_t>(program.count++)]);
  while (!in.done() && program.count < kMaxSteps);
}

} // namespace assay::fuzz
