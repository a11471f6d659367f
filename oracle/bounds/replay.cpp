// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "oracle/exact/dtype.h"
#include "oracle/exact/sums.h"

namespace assay::oracle {
namespace {

constexpr double kU53 = 0x1p-53;
constexpr double kFloatExp2 = 0x1p-48; // exp2 and products of this evaluation, with room

// One tile as its state sees it. Exponents are relative to the row's x_max.
struct TileView {
  int begin, end;
  int64_t own_blocks; // P.V steps of this tile
  double top;         // Y_t: running maximum of the exact logits (a constant by choice)
  double deviation;   // |kernel's running maximum - Y_t|
  double low;         // the kernel's running maximum is at least this
  bool may_grow;      // the maximum may grow at this tile
  int grows_after;    // tiles later in this state at which it may grow
  int64_t blocks;     // P.V steps from this tile on
  bool reference; // its maximum is certainly the state's last one, in the state with the row's max
  bool two_parts; // P keeps, rounded, what rounding took from it
};
using StateView = std::vector<TileView>;

// Forward: running maximum with its limits. Backward: what can still happen to this tile's share.
void scan_state(const RowWork &work, StateView &state) {
  double top = -INFINITY, high = -INFINITY, low = -INFINITY;
  for (TileView &tile : state) {
    double tile_high = -INFINITY;
    for (int j = tile.begin; j < tile.end; ++j) {
      const double y = work.x[j] - work.x_max;
      const double error = work.x_error[j] + work.x_radius[j] + std::fabs(y) * 2 * kU53;
      tile_high = std::max(tile_high, y + error);
      low = std::max(low, y - error);
      top = std::max(top, y);
    }
    tile.may_grow = &tile != &state.front() && tile_high > (&tile - 1)->low;
    high = std::max(high, tile_high);
    tile.top = top;
    tile.low = low;
    tile.deviation = std::max(high - top, top - low);
  }
  int grows = 0;
  int64_t blocks = 0;
  for (auto tile = state.rbegin(); tile != state.rend(); ++tile) {
    blocks += tile->own_blocks;
    tile->grows_after = grows;
    tile->blocks = blocks;
    tile->reference = grows == 0 && state.back().top == 0.0;
    grows += tile->may_grow;
  }
}

std::vector<StateView> view_states(const TileOrder &order, const RowWork &work) {
  std::map<std::pair<int, int>, StateView> states;
  for (const KeyTile &tile : order) {
    if (tile.begin == tile.end) continue;
    states[{tile.split, tile.state}].push_back({tile.begin, tile.end, pv_blocks(work.model, tile),
                                                0, 0, 0, false, 0, 0, false, tile.p_parts == 2});
  }
  std::vector<StateView> result;
  bool have_reference = false;
  for (auto &[key, state] : states) {
    scan_state(work, state);
    // With ties between states only one of them can be the reference.
    for (TileView &tile : state)
      tile.reference = tile.reference && !have_reference;
    have_reference = have_reference || state.back().reference;
    result.push_back(std::move(state));
  }
  return result;
}

double mass_of(const RowWork &work, const TileView &tile) {
  double mass = 0.0;
  for (int j = tile.begin; j < tile.end; ++j)
    mass += work.weight[j];
  return mass;
}

// The common factor of all weights is free: either the exact scale, or the reference state's own.
// Returns the deviation to charge to every tile that is not of the reference (0 and `use` false:
// the exact scale is the better choice).
double choose_scale(const RowWork &work, const std::vector<StateView> &states, bool &use) {
  double exact_cost = 0.0, mass_elsewhere = 0.0, cost_elsewhere = 0.0, deviation = 0.0;
  bool found = false;
  for (const StateView &state : states) {
    for (const TileView &tile : state) {
      const double mass = mass_of(work, tile);
      exact_cost += mass * tile.deviation;
      if (tile.reference) {
        found = true;
        deviation = tile.deviation;
      } else {
        cost_elsewhere += mass * tile.deviation;
        mass_elsewhere += mass;
      }
    }
  }
  use = found && cost_elsewhere + mass_elsewhere * deviation < exact_cost;
  return use ? deviation : 0.0;
}

// The kernel's rounded P is within `gap` of `p`: with one candidate, exactly it; with several,
// their middle is the reference, which costs half of what either end would.
struct Rounded {
  double p, gap;
};

// One rounding or the sum of two parts: monotone both, since at a tie of the first part the second
// is half a step up or half a step down.
double round_weight(const ErrorModel &m, double p, bool two_parts) {
  const auto round = [&](double x) {
    return std::ldexp(round_to(*m.p_format, std::ldexp(x, m.p_scale_log2)), -m.p_scale_log2);
  };
  const double first = round(p);
  return two_parts ? first + round(p - first) : first;
}

Rounded round_window(const ErrorModel &m, double p, double window, bool two_parts) {
  const double low = p * (1.0 - window);
  const double high = round_weight(m, p * (1.0 + window), two_parts);
  const double least = low < 2 * kFloor ? 0.0 : round_weight(m, low, two_parts); // or flushed
  return {0.5 * (least + high), 0.5 * (high - least)};
}

// Exponent error and exp2 factors that a tile's share meets after its P was computed.
double rescale_error(const RowWork &work, const TileView &tile, bool use_reference,
                     double reference) {
  const double below = -tile.top + tile.deviation + work.x_error_max;
  double eta = (work.scale_error + 2 * kU + work.model.conversion) * below;
  if (use_reference) {
    eta += tile.reference ? 0.0 : tile.deviation + reference;
  } else {
    eta += tile.deviation;
  }
  // Maxima stored scaled bring the roundings of c * m into the rescales; rounded P does not take
  // them back, so they do not cancel as in T0. Without a rescale to come there is nothing to round.
  if (work.shape.states > 1 || tile.grows_after > 0) eta += 2 * kU * work.x_abs;
  eta += work.shape.stages * combine_exponent_error(work, below);
  const double factors = tile.grows_after + (work.shape.states > 1 ? 1.0 : 0.0) + work.shape.stages;
  const double omega = std::expm1(kLn2 * eta * kSlack + factors * std::log1p(work.model.exp2));
  return below > kFlushExponent ? std::max(omega, 1.0) : omega;
}

void replay_tile(const RowWork &work, const TileView &tile, double omega_after, KeyReplay &keys,
                 ReplayBudget &budget) {
  const ErrorModel &m = work.model;
  const double scale = std::exp2(std::max(tile.top, -1000.0)) / work.z;
  // Two parts: an accumulator each, and the sum of both.
  const double parts = tile.two_parts ? 1.0 + 2 * m.p_unit : 1.0;
  const double steps = parts * std::expm1(static_cast<double>(tile.blocks) * std::log1p(m.kappa) +
                                          tile.grows_after * std::log1p(m.unit) +
                                          tail_errors(m, work.shape).partials);
  for (int j = tile.begin; j < tile.end; ++j) {
    const double y = work.x[j] - work.x_max;
    const double below = tile.top - y;
    const double own = work.x_radius[j] + (std::fabs(y) + below) * 2 * kU53;
    const double score = work.x_error[j] + tile.deviation;
    const double eta = own + score + (work.scale_error + 2 * kU + m.conversion) * (below + score) +
                       kU * work.x_abs;
    double window = (1.0 + m.exp2) * (1.0 + kFloatExp2) * std::exp(kLn2 * eta * kSlack) - 1.0;
    const double p = std::exp2(-std::min(below, 1000.0));
    // A weight that may be far above 1 is one that nothing is known of: it has no candidates.
    if (!(p * (1.0 + window) <= 2.0)) {
      budget.vague = true;
      return;
    }
    const Rounded rounded = round_window(m, p, window, tile.two_parts);
    if (p * (1.0 - window) < 2 * kFloor) window = std::max(window, 1.0);
    keys.p[j] = rounded.p;
    keys.shift[j] = tile.top;
    const double mass = work.weight[j] / work.z;
    budget.rho[j] = rounded.p * scale;
    budget.ambiguity[j] = rounded.gap * scale * (1.0 + omega_after);
    budget.rescale[j] = budget.rho[j] * omega_after;
    budget.rescale_mass[j] = mass * omega_after;
    budget.accumulate[j] = steps * (budget.rho[j] * (1.0 + omega_after) + budget.ambiguity[j]);
    // A subnormal P is aligned by the exponent of the smallest normal one. A second part may be one
    // whatever P is.
    if (tile.two_parts || rounded.p - rounded.gap < m.p_normal)
      budget.accumulate[j] += parts * m.alignment * m.p_normal * scale;
    budget.denominator += mass * window * (1.0 + omega_after);
    budget.mass_low -= mass * ((1.0 + window) * (1.0 + omega_after) - 1.0);
    budget.ambiguous_fraction += rounded.gap > 0.0;
  }
}

} // namespace

void replay_keys(const RowProblem &problem, const RowWork &work, KeyReplay &keys,
                 ReplayBudget &budget) {
  const size_t n = work.x.size();
  for (auto *array : {&keys.p, &keys.shift, &budget.rho, &budget.ambiguity, &budget.rescale,
                      &budget.rescale_mass, &budget.accumulate}) {
    array->assign(n, 0.0);
  }
  budget.mass_low = 1.0;
  const std::vector<StateView> states = view_states(*problem.order, work);
  bool use_reference = false;
  const double reference = choose_scale(work, states, use_reference);
  for (const StateView &state : states) {
    for (const TileView &tile : state) {
      const double omega = rescale_error(work, tile, use_reference, reference);
      replay_tile(work, tile, omega, keys, budget);
    }
  }
  budget.ambiguous_fraction /= static_cast<double>(n);
  budget.informative = !work.coarse && !work.vague && !budget.vague && budget.mass_low > 0.5;
}

ReplayedRow replay_row(const RowProblem &problem, const RowWork &work) {
  ReplayedRow row;
  if (work.model.p_format == nullptr) return row;
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
  const bool two_parts = std::any_of(problem.order->begin(), problem.order->end(),
                                     [](const KeyTile &tile) { return tile.p_parts == 2; });
  const double own = kFloatExp2 + 1.01 * work.mass_error + 4 * (static_cast<double>(n) + 8) * kU53;
  row.o.resize(columns);
  row.budget.resize(columns);
  for (size_t i = 0; i < columns; ++i) {
    const double limit = std::max(std::fabs(keys.v_min[i]), std::fabs(keys.v_max[i]));
    row.o[i] = {value[i], (own * magnitude[i] + 0x1p-500 * limit) * kSlack + 0x1p-1000};
    const double result = std::fabs(value[i]) + row.o[i].rad;
    BudgetTerms &t = row.budget[i];
    t.weights = (rescaled[i] + result * b.denominator) / b.mass_low * kSlack;
    t.p_rounding = ambiguous[i] / b.mass_low * kSlack;
    t.accumulation =
        (accumulated[i] / b.mass_low +
         value_rounding(work, (magnitude[i] + ambiguous[i]) / b.mass_low) * (1.0 + tail.pv)) *
        kSlack;
    const double sum = result + t.weights + t.p_rounding + t.accumulation;
    t.normalisation = tail.normalise * sum;
    t.flush = (two_parts ? 2 : 1) * underflow_budget(work, tail, limit);
    finish_output(work, row.o[i], t);
    t.overflow_possible = overflow_possible(work, limit);
  }
  return row;
}

} // namespace assay::oracle
