// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "oracle/bounds/replay_formulas.h"
#include "oracle/exact/dtype.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

/// The tiles of all states, one state behind another, and which of them begin one.
struct Tiles {
  std::vector<TileView> views;
  std::vector<bool> begins;
};

Tiles tiles_of(const TileOrder &order, const RowWork &work) {
  std::map<std::pair<int, int>, std::vector<TileView>> states;
  for (const KeyTile &tile : order) {
    if (tile.begin == tile.end) continue;
    states[{tile.split, tile.state}].push_back(
        {tile.begin, tile.end, pv_blocks(work.model, tile), tile.p_parts == 2});
  }
  Tiles tiles;
  for (const auto &[key, state] : states)
    for (size_t i = 0; i < state.size(); ++i) {
      tiles.views.push_back(state[i]);
      tiles.begins.push_back(i == 0);
    }
  return tiles;
}

} // namespace

void replay_keys(const RowProblem &problem, const RowWork &work, KeyReplay &keys,
                 ReplayBudget &budget) {
  const size_t n = work.x.size();
  for (auto *array : {&keys.p, &keys.shift, &budget.rho, &budget.ambiguity, &budget.rescale,
                      &budget.rescale_mass, &budget.accumulate}) {
    array->assign(n, 0.0);
  }
  Tiles tiles = tiles_of(*problem.order, work);
  const KeyArrays arrays{work.x.data(), work.x_radius.data(), work.x_error.data(),
                         work.weight.data()};
  for (TileView &tile : tiles.views)
    look_at_tile(work.x_max, arrays, tile);
  const ReplayScale scale =
      scan_states(tiles.views.data(), static_cast<int>(tiles.views.size()),
                  [&](int tile) { return tiles.begins[static_cast<size_t>(tile)]; });
  const double partials = tail_errors(work.model, work.shape).partials;
  double ambiguous = 0.0;
  for (const TileView &tile : tiles.views) {
    const TileErrors errors = tile_errors(work, partials, tile, scale);
    budget.sums.two_parts = budget.sums.two_parts || tile.two_parts;
    for (int at = tile.begin; at < tile.end; ++at) {
      const auto j = static_cast<size_t>(at);
      const ReplayedKey key =
          replay_key(work, *work.model.p_format, tile, errors, work.logit(j), work.weight[j]);
      budget.vague = budget.vague || key.vague;
      keys.p[j] = key.p;
      keys.shift[j] = key.vague ? 0.0 : tile.top;
      budget.rho[j] = key.rho;
      budget.ambiguity[j] = key.ambiguity;
      budget.rescale[j] = key.rescale;
      budget.rescale_mass[j] = key.rescale_mass;
      budget.accumulate[j] = key.accumulate;
      budget.sums.denominator += key.denominator;
      budget.sums.mass_low -= key.mass_lost;
      ambiguous += key.ambiguous ? 1.0 : 0.0;
    }
  }
  budget.ambiguous_fraction = ambiguous / static_cast<double>(n);
  budget.informative = budget.sums.informative(work, budget.vague);
}

ReplayedRow replay_row(const RowProblem &problem, const RowWork &work) {
  ReplayedRow row;
  if (!work.model.replays_p) return row;
  const KeySet &keys = *problem.keys;
  const size_t n = keys.size();
  const int d = keys.value_dim();
  KeyReplay replay;
  ReplayBudget b;
  replay_keys(problem, work, replay, b);
  row.ambiguous_fraction = b.ambiguous_fraction;
  if (!b.informative) return row;

  const auto columns = static_cast<size_t>(d);
  std::vector<double> value(columns), magnitude(columns), ambiguous(columns), accumulated(columns),
      rescaled(columns);
  const float *v = keys.v.data();
  weighted_sums(v, n, d, b.rho.data(), value.data());
  weighted_magnitudes(v, n, d, b.rho.data(), magnitude.data());
  weighted_magnitudes(v, n, d, b.ambiguity.data(), ambiguous.data());
  weighted_magnitudes(v, n, d, b.accumulate.data(), accumulated.data());
  centered_magnitudes(v, n, d, b.rescale.data(), b.rescale_mass.data(), value.data(),
                      rescaled.data());
  const TailErrors tail = tail_errors(work.model, work.shape);
  row.o.resize(columns);
  row.budget.resize(columns);
  for (size_t i = 0; i < columns; ++i) {
    const double limit = std::max(std::fabs(keys.v_min[i]), std::fabs(keys.v_max[i]));
    const ReplaySums sums{value[i], magnitude[i], ambiguous[i], accumulated[i], rescaled[i], limit};
    row.o[i] = replayed_column(work, sums);
    row.budget[i] = replay_budget(work, tail, b.sums, sums, row.o[i]);
  }
  return row;
}

} // namespace assay::oracle
