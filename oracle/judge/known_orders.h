// SPDX-License-Identifier: Apache-2.0
// The orders of keys that kernels of an arithmetic are known to have.
#pragma once

#include <functional>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/exact/tile_order.h"
#include "oracle/judge/found_order.h"

namespace assay::oracle {

/** A list of keys of which a row sees [begin, end). Tiles and splits are cut from the list. */
struct ListRange {
  int length, begin, end;
};

/** Into how many splits the rule cuts a list. */
int splits_of(const OrderRule &rule, int length);
/** The order of the keys that the row sees, counted from the first of them. */
TileOrder order_of(const OrderRule &rule, const ListRange &range);

/** Rules that cut a list of this length differently, the usual ones first. */
std::vector<OrderRule> known_orders(const assay_arithmetic &arithmetic, int length);

/**
 * Hands on orders in the neighbourhood of a rule, that kernels of unusual kinds have: any size of
 * tile from 1 to 256, in both directions, and one more cut between any two keys, within a state or
 * between two splits, from which on tiles are counted.
 */
void near_orders(const OrderRule &rule, const ListRange &range,
                 const std::function<void(const TileOrder &)> &take);

} // namespace assay::oracle
