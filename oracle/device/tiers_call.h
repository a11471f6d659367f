// SPDX-License-Identifier: Apache-2.0
// Internal: a call as the text of every tier takes it. Plain data; arrays where that text runs.
#pragma once

#include <vector>

#include "oracle/bounds/replay_formulas.h"
#include "oracle/device/make_call.h"
#include "oracle/device/tiers.h"

namespace assay::oracle::device {

/** A tile of a row's declared order. Tiles of a state follow each other. */
struct RowTile {
  int32_t begin, end;
  int32_t own_blocks; ///< P.V steps
  int32_t two_parts, begins_state;
};

/** Of a row's keys while they are worked on: arrays of `keys` entries each, behind one another. */
enum KeyArray {
  kX,
  kRadius,
  kError,
  kWeight,
  kOmega,
  kLow,
  kSize,  ///< sum |q_i k_i|
  kExact, ///< the kernel's own score
  kTile,  ///< the number of its tile
  kRho,
  kAmbiguity,
  kRescale,
  kRescaleMass,
  kAccumulate,
  kKeyArrays
};

/** What a team needs of memory. */
struct TierScratch {
  int64_t keys;   ///< at most, a sink counted
  int64_t tiles;  ///< of a row at most, a sink's counted
  int32_t slices; ///< parts that keys are cut into when components are summed
  int32_t dims;

  static constexpr int kSums = 6; ///< of a component at once
  static constexpr int kTiers = 3;

  ORACLE_HOST_DEVICE int64_t key_bytes() const {
    return keys * static_cast<int64_t>(kKeyArrays * sizeof(double) + 2 * sizeof(void *));
  }
  ORACLE_HOST_DEVICE int64_t sum_bytes() const {
    return int64_t{slices + 1} * kSums * dims * static_cast<int64_t>(sizeof(double));
  }
  ORACLE_HOST_DEVICE int64_t element_bytes() const {
    return int64_t{kTiers} * (dims + 1) * static_cast<int64_t>(sizeof(TierElement));
  }
  ORACLE_HOST_DEVICE int64_t tile_bytes() const {
    return tiles * static_cast<int64_t>(sizeof(TileView) + sizeof(TileErrors));
  }
  ORACLE_HOST_DEVICE int64_t bytes() const {
    return key_bytes() + sum_bytes() + element_bytes() + tile_bytes();
  }
};
static_assert(sizeof(TierElement) % sizeof(double) == 0 && sizeof(TileView) % sizeof(double) == 0);

struct TierCall {
  Call base;
  const int32_t *list;       ///< [rows]
  const RowTile *tiles;      ///< null: no order is declared
  const int64_t *first_tile; ///< [rows + 1]
  const float *fp8;          ///< [256] what fp8 bits are
  Format p_format;           ///< where base.model.p_format is not null
  int32_t replay_scores;     ///< T2 is wanted
  int32_t mma_block, mma_fraction_bits;
  int64_t pairs;
  TierScratch scratch;
  unsigned char *scratch_base; ///< [teams]
  TierRow *rows;               ///< [pairs]
  unsigned long long *budgets; ///< [BudgetSizes::kCounts]
  BulkElement *elements;       ///< [pairs, dims + 1, 3]; null: nobody asks
};

/** What a TierCall is made of, kept while it is in use. */
struct TierArrays {
  CallShape shape;
  std::vector<RowTile> tiles;
  std::vector<int64_t> first_tile;
  std::vector<float> fp8;
  int64_t longest = 0, most_tiles = 0; ///< of a row, a sink counted
};
TierArrays arrays_of(const AttentionRows &rows, const KernelModel &model);

inline constexpr int kTierArrays = kCallArrays + 4;

/** All but scratch and results. */
TierCall make_tier_call(const AttentionRows &rows, const CallOutputs &outputs,
                        const KernelModel &model, const TierArrays &arrays, const Place &place);

} // namespace assay::oracle::device
