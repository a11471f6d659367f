// SPDX-License-Identifier: Apache-2.0
// Internal: the tiles of a row as the rounding replay sees them. Statements and proofs:
// oracle/BOUNDS.md, section 4. One text for the host and for a GPU.
#pragma once

#include "oracle/bounds/key_formulas.h"

namespace assay::oracle {

inline constexpr double kU53 = 0x1p-53;

/** One tile as its state sees it. Exponents are relative to the row's x_max. */
struct TileView {
  int begin, end;
  int64_t own_blocks;     ///< P.V steps of this tile
  bool two_parts;         ///< P keeps, rounded, what rounding took from it
  double top = 0.0;       ///< Y_t: running maximum of the exact logits (a constant by choice)
  double high = 0.0;      ///< limit of the kernel's logits in this tile
  double low = 0.0;       ///< the kernel's running maximum is at least this
  double deviation = 0.0; ///< |kernel's running maximum - Y_t|
  double mass = 0.0;      ///< sum of the tile's weights
  bool may_grow = false;  ///< the maximum may grow at this tile
  int grows_after = 0;    ///< tiles later in this state at which it may grow
  int64_t blocks = 0;     ///< P.V steps from this tile on
  /// Its maximum is certainly the state's last one, in the state with the row's maximum.
  bool reference = false;
};

/** Logits and weights of a row's keys. */
struct KeyArrays {
  const double *x, *radius, *error, *weight;
};

/** What a tile's own keys say of it. */
struct TileLook {
  double top = -HUGE_VAL, high = -HUGE_VAL, low = -HUGE_VAL, mass = 0.0;

  ORACLE_HOST_DEVICE void add(double x_max, const Logit &logit, double weight) {
    const double y = logit.x - x_max;
    const double error = logit.error + logit.radius + fabs(y) * 2 * kU53;
    high = fmax(high, y + error);
    low = fmax(low, y - error);
    top = fmax(top, y);
    mass += weight;
  }
  ORACLE_HOST_DEVICE void put(TileView &tile) const {
    tile.top = top;
    tile.high = high;
    tile.low = low;
    tile.mass = mass;
  }
};
ORACLE_HOST_DEVICE inline void look_at_tile(double x_max, const KeyArrays &keys, TileView &tile) {
  TileLook look;
  for (int j = tile.begin; j < tile.end; ++j)
    look.add(x_max, {keys.x[j], keys.radius[j], keys.error[j]}, keys.weight[j]);
  look.put(tile);
}

/**
 * Who scans a state's tiles together. Of their lanes' x: most_to and sum_to are those of lanes up
 * to their own, before is that of the lane before (the first gets `other`), last the last lane's.
 */
struct OneLane {
  ORACLE_HOST_DEVICE static int rank() { return 0; }
  ORACLE_HOST_DEVICE static int size() { return 1; }
  ORACLE_HOST_DEVICE static void sync() {}
  ORACLE_HOST_DEVICE static double most_to(double x) { return x; }
  ORACLE_HOST_DEVICE static int64_t sum_to(int64_t x) { return x; }
  ORACLE_HOST_DEVICE static double before(double, double other) { return other; }
  template <class T>
  ORACLE_HOST_DEVICE static T last(T x) {
    return x;
  }
};

/** A state's tiles, in order. Forward: the running maximum with its limits. Backward: what can
    still happen to a tile's share. Maxima and counts are exact, whoever joins them. */
template <class Lanes>
ORACLE_HOST_DEVICE inline void scan_state(const Lanes &lanes, TileView *first, TileView *last) {
  double high = -HUGE_VAL, top = -HUGE_VAL, low = -HUGE_VAL; // maxima of the tiles behind
  for (TileView *from = first; from < last; from += lanes.size()) {
    TileView *tile = from + lanes.rank();
    const bool has = tile < last;
    const double own_high = has ? tile->high : -HUGE_VAL;
    const double all_high = fmax(high, lanes.most_to(own_high));
    const double all_top = fmax(top, lanes.most_to(has ? tile->top : -HUGE_VAL));
    const double all_low = fmax(low, lanes.most_to(has ? tile->low : -HUGE_VAL));
    const double earlier = lanes.before(all_low, low);
    if (has) {
      tile->may_grow = tile != first && own_high > earlier;
      tile->top = all_top;
      tile->low = all_low;
      tile->deviation = fmax(all_high - all_top, all_top - all_low);
    }
    high = lanes.last(all_high);
    top = lanes.last(all_top);
    low = lanes.last(all_low);
  }
  lanes.sync();
  int64_t grows = 0, blocks = 0;
  for (TileView *to = last; to > first; to -= lanes.size()) {
    TileView *tile = to - 1 - lanes.rank();
    const bool has = tile >= first;
    const int64_t grow = has && tile->may_grow ? 1 : 0;
    const int64_t all_grows = grows + lanes.sum_to(grow);
    const int64_t all_blocks = blocks + lanes.sum_to(has ? tile->own_blocks : 0);
    if (has) {
      tile->blocks = all_blocks;
      tile->grows_after = static_cast<int>(all_grows - grow);
      tile->reference = tile->grows_after == 0 && top == 0.0;
    }
    grows = lanes.last(all_grows);
    blocks = lanes.last(all_blocks);
  }
}

/** The common factor of all weights is free: the exact scale, or the reference state's own. */
struct ReplayScale {
  bool reference = false;
  double deviation = 0.0; ///< charged to every tile that is not of the reference
};

/** What either scale costs. */
struct ScaleCosts {
  double exact = 0.0, mass_elsewhere = 0.0, cost_elsewhere = 0.0;
  double deviation = -1.0; ///< deviation of the last tile of the reference; below 0: there is none

  ORACLE_HOST_DEVICE void add(const TileView &tile) {
    exact += tile.mass * tile.deviation;
    if (tile.reference) {
      deviation = tile.deviation;
    } else {
      cost_elsewhere += tile.mass * tile.deviation;
      mass_elsewhere += tile.mass;
    }
  }
  ORACLE_HOST_DEVICE ReplayScale cheaper() const {
    // The tie-break. Host and GPU sum in different orders; the factor makes both choose the same
    // scale when the costs are equal.
    const double other = (cost_elsewhere + mass_elsewhere * deviation) * (1.0 + 0x1p-30);
    const bool reference = deviation >= 0.0 && other < exact;
    return reference ? ReplayScale{true, deviation} : ReplayScale{};
  }
};

/** Tiles of all states, one state behind another: `begins(i)` says whether tile i is a state's
    first. What look_at_tile gives must stand there. */
template <class Begins>
ORACLE_HOST_DEVICE inline ReplayScale scan_states(TileView *tiles, int count, Begins begins) {
  bool have_reference = false;
  for (int first = 0, last = 0; first < count; first = last) {
    for (last = first + 1; last < count && !begins(last);)
      ++last;
    scan_state(OneLane{}, tiles + first, tiles + last);
    // With ties between states only one of them can be the reference.
    const bool reference = tiles[last - 1].reference;
    for (int i = first; i < last; ++i)
      tiles[i].reference = tiles[i].reference && !have_reference;
    have_reference = have_reference || reference;
  }
  ScaleCosts costs;
  for (int i = 0; i < count; ++i)
    costs.add(tiles[i]);
  return costs.cheaper();
}

} // namespace assay::oracle
