// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "oracle/judge/key_order.h"

namespace assay::oracle::test {

/// What a kernel would say that visits the keys of request r in order_of(r), on one level.
template <class OrderOf>
std::shared_ptr<const KeyOrder> flat_order(int requests, OrderOf order_of) {
  auto flat = std::make_shared<KeyOrder>();
  flat->first.push_back(0);
  for (int r = 0; r < requests; ++r) {
    for (const KeyTile &tile : order_of(r))
      flat->tiles.push_back({0, tile.split, tile.state, tile.begin, tile.end, tile.p_parts});
    flat->first.push_back(static_cast<int64_t>(flat->tiles.size()));
  }
  return flat;
}

} // namespace assay::oracle::test
