// SPDX-License-Identifier: Apache-2.0
// Orders of keys found by themselves: for outputs whose kernel declares none.
#pragma once

#include <span>
#include <vector>

#include "oracle/judge/judge.h"

namespace assay::oracle {

/**
 * Looks for the order of keys of every row in `chosen`, all heads, and holds the row to T1 by it.
 * A pair that is inside and explained by no known order is a doubt, where the rest of its row leaves
 * none about the order (oracle/BOUNDS.md, section 8): no finding, as an order that nobody knew may
 * explain it. `outside`: pairs that are findings, ascending by row and head; nothing is concluded
 * from them. The result does not depend on `threads`.
 */
FoundOrder find_orders(const AttentionRows &rows, const CallOutputs &outputs,
                       const KernelModel &model, std::span<const int> chosen,
                       const std::vector<RowHead> &outside, int threads);

} // namespace assay::oracle
