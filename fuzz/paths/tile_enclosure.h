// SPDX-License-Identifier: Apache-2.0
// The exact state of one query row of a TileProgram, and how far the arithmetic that AttentionTile
// declares may be from it. In double precision, whose own error the slack holds.
#pragma once

#include "fuzz/paths/enclosure.h"
#include "fuzz/paths/tile_program.h"

namespace assay::fuzz {

/// A component of o.
struct EnclosedComponent {
  Enclosure o;
  bool claimed;  // every value that meets the row is finite, and no sum comes near the fp32 range
  bool must_nan; // a key with 2^-20 of the weight or more has a NaN here
  double magnitude; // sum of |w v|
  double dominant;  // exponent of the weight of the key that makes most of it
};

struct EnclosedRow {
  bool claimed = false; // the row has a key, and exponents are off by less than kMaxExponentError
  Enclosure d;
  double smallest = 0; // exponent of the smallest weight
  std::array<EnclosedComponent, kTileDims> components;
};

/// `row` has no score that is NaN or +inf, all are in range, and `m` are its exact maxima after
/// each step, the last one finite.
EnclosedRow enclose_tile_row(const TileProgram &program, int row, const float (&m)[kMaxSteps]);

} // namespace assay::fuzz
