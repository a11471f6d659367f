// SPDX-License-Identifier: Apache-2.0
// Internal: T1, the rounding replay. With the tile order known, most keys' rounded P is known too,
// and the dominant term of T0 turns from a bound into a number.
#pragma once

#include <vector>

#include "oracle/bounds/replay_formulas.h"
#include "oracle/bounds/row_work.h"

namespace assay::oracle {

/** What the replay fixes for each key; exact constants from here on. */
struct KeyReplay {
  std::vector<double> p;     ///< rounded weight on its tile's scale
  std::vector<double> shift; ///< X_t - x_max: exponent of the tile's scale, exact by choice
};

/** Per-key coefficients of the T1 bound; see oracle/BOUNDS.md section 4. */
struct ReplayBudget {
  std::vector<double> rho;          ///< rounded p on the row's scale, over Z
  std::vector<double> ambiguity;    ///< g_j on the row's scale, over Z: multiplies |v_j|
  std::vector<double> rescale;      ///< rho_j Omega^alpha_j
  std::vector<double> rescale_mass; ///< pi_j Omega^alpha_j
  std::vector<double> accumulate;   ///< rounding errors of P.V from j's tile on: multiplies |v_j|
  ReplayNumbers sums;
  double ambiguous_fraction = 0.0;
  bool vague = false; ///< some weight may be anything
  bool informative = false;
};

void replay_keys(const RowProblem &problem, const RowWork &work, KeyReplay &keys,
                 ReplayBudget &budget);

/** T1 of a row that has a tile order; T2 when `work` was prepared with replayed scores. */
ReplayedRow replay_row(const RowProblem &problem, const RowWork &work);

} // namespace assay::oracle
