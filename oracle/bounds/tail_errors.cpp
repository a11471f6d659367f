// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/tail_errors.h"

#include <algorithm>
#include <cmath>

namespace assay::oracle {
namespace {

// A weight that enters a sum of a narrow format is rounded to it. One that enters a sum of rounded
// weights is rounded to P's format. Either happens once: the sum is off by the largest such error.
// What is subnormal there is off by a constant, in at most four roundings a key (entry, addition,
// rescaling of its lane, merge), of a sum that is at least half of what an exponential of 0 may be.
double row_sum_error(const ErrorModel &m, const RowShape &shape, double merges) {
  const double tiles = static_cast<double>(shape.tiles);
  // Each addition that may round brings a weight along: a path has no more of them than keys.
  const double additions = std::min(m.sum_depth * tiles, static_cast<double>(shape.keys));
  const double steps = additions + 2 * tiles + merges;
  const double splits = static_cast<double>(shape.stages) * shape.splits;
  const double keys = std::min({tiles * m.tile, static_cast<double>(shape.keys),
                                static_cast<double>(shape.pv_blocks) * std::max(m.block, 1)});
  const double constant =
      (4.0 * (keys * shape.states + merges) * m.sum_floor + keys * shape.states * m.entry_floor) /
      (0.5 * (1.0 - m.exp2)) * kSlack;
  const double lost = constant < 1.0 ? -std::log1p(-constant) : INFINITY;
  return lost - std::log1p(-m.entry_unit) - steps * std::log1p(-m.sum_unit) -
         splits * std::log1p(-kU);
}

} // namespace

TailErrors tail_errors(const ErrorModel &m, const RowShape &shape) {
  const double log_u = std::log1p(kU);
  const double merges = shape.states > 1 ? shape.states + 1.0 : 0.0;
  const double tiles = static_cast<double>(shape.tiles);
  const double splits = shape.splits;
  TailErrors t{};
  t.pv = std::expm1(static_cast<double>(shape.pv_blocks) * std::log1p(m.kappa) +
                    (tiles - 1) * std::log1p(m.unit));
  // P in two parts, where a kernel declares it, brings a second accumulator and a sum of the two.
  const int parts = m.p_format != nullptr ? 2 : 1;
  // A partial's own reciprocal is an error of its numerator alone: nothing in the row's denominator
  // takes it back, and it differs between splits.
  const double numerator = merges + (parts - 1) + shape.stages * (splits + 2);
  t.partials = numerator * log_u + shape.stages * std::log1p(m.rcp) +
               shape.stored * std::log1p(m.partial_unit);
  t.merge = (1.0 + t.pv) * std::expm1(t.partials);
  t.row_sum = row_sum_error(m, shape, merges);
  t.normalise = std::expm1(t.row_sum + std::log1p(m.rcp) + log_u);
  t.floor = kFloor * (parts * (3 * tiles + static_cast<double>(shape.pv_blocks) + 2 * merges) + 4 +
                      shape.stages * (2 * splits + 4));
  return t;
}

} // namespace assay::oracle
