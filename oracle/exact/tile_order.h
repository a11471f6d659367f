// SPDX-License-Identifier: Apache-2.0
// In which order a kernel visits the keys of one row: what the rounding replay needs to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::oracle {

/**
 * Keys [begin, end) of the row's KeySet, between two updates of the running maximum of one state.
 * The states of one split are merged in the block as fp32 (m, d, o); splits through (O, LSE).
 */
struct KeyTile {
  int split;
  int state;
  int begin, end;
  int p_parts = 1; ///< 2: what rounding took from P, rounded itself, meets V too
  int lead = 0;    ///< masked keys before `begin` that the kernel's first P.V step still covers
};

/** In processing order within each (split, state); empty tiles are allowed and ignored. */
using TileOrder = std::vector<KeyTile>;

/** The order in which the row of (request, query head) is visited; empty function: unknown. */
using TileOrderFn = std::function<TileOrder(int request, int qo_head)>;

/** Of an order over token positions, what lies in [begin, end), counted from `begin`. */
TileOrder clip_order(const TileOrder &order, int begin, int end);

/** A sink is a split of its own: one key, merged through (O, LSE). */
void append_sink(TileOrder &order, int key);

/** What a kernel gives as its order of keys is none: its own mistake, and no bound holds for it. */
struct OrderError : std::invalid_argument {
  enum class Kind : uint8_t {
    kRefused,       ///< the kernel gives none
    kCounts,        ///< counts of tiles that no order has
    kLevel,         ///< a tile of a level that the call does not have
    kTooManySplits, ///< more than the kernel declares
    kOutside,       ///< a tile of keys that the row does not have
    kTwice,         ///< a key is visited twice
    kMissed,        ///< a key is not visited
    kEnded          ///< the kernel's process ended when it was asked
  };
  static constexpr Kind kLast = Kind::kEnded;

  OrderError(Kind k, const std::string &words) : std::invalid_argument(words), kind(k) {}

  Kind kind; ///< what tells it from others: the words may change
};
const char *name_of(OrderError::Kind kind);

/** Throws OrderError, which names the key, unless every key of [0, keys) is in exactly one tile. */
void require_partition(const TileOrder &order, size_t keys);

} // namespace assay::oracle
