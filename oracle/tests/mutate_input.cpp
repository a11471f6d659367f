// SPDX-License-Identifier: Apache-2.0
// Mutants that show in what the kernel reads, and the names of all of them.
#include <algorithm>

#include "oracle/tests/emulation.h"

namespace assay::oracle::test {
namespace {

void copy_key(const KeySet &from, size_t j, KeySet &to, size_t at) {
  const auto d = static_cast<size_t>(to.head_dim);
  std::copy_n(from.k.begin() + static_cast<int64_t>(j * d), d,
              to.k.begin() + static_cast<int64_t>(at * d));
  std::copy_n(from.v.begin() + static_cast<int64_t>(j * d), d,
              to.v.begin() + static_cast<int64_t>(at * d));
}

// Splits the tile around the key; a kernel that masks it out sees the rest in the same order.
void drop_key(TileOrder &order, int key) {
  for (size_t t = 0; t < order.size(); ++t) {
    KeyTile &tile = order[t];
    if (key < tile.begin || key >= tile.end) continue;
    KeyTile rest = tile;
    tile.end = key;
    rest.begin = key + 1;
    order.insert(order.begin() + static_cast<int64_t>(t) + 1, rest);
    return;
  }
}

} // namespace

TileOrder deal_tiles(int keys, int tile, int splits, int states, int p_parts) {
  TileOrder order;
  const int tiles = (keys + tile - 1) / tile;
  const int per_split = std::max(1, (tiles + splits - 1) / splits);
  for (int t = 0; t < tiles; ++t) {
    const int split = t / per_split;
    order.push_back({split, (t - split * per_split) % states, t * tile,
                     std::min(keys, (t + 1) * tile), p_parts});
  }
  return order;
}

void mutate_input(Mutant mutant, uint64_t seed, const KeySet &extra, KeySet &keys,
                  TileOrder &order) {
  const size_t n = keys.size();
  const auto d = static_cast<size_t>(keys.head_dim);
  const size_t at = n > 2 ? 1 + seed % (n - 2) : 0;
  switch (mutant) {
  case Mutant::kLastKeyDropped:
    drop_key(order, static_cast<int>(n) - 1);
    break;
  case Mutant::kInteriorKeyDropped:
    drop_key(order, static_cast<int>(at));
    break;
  case Mutant::kKeyPastTheEnd:
    keys.k.resize((n + 1) * d);
    keys.v.resize((n + 1) * d);
    copy_key(extra, 0, keys, n);
    order.back().end += 1;
    break;
  case Mutant::kRowDuplicated:
    copy_key(KeySet(keys), at - 1, keys, at);
    break;
  case Mutant::kValueRowsSwapped:
    std::swap_ranges(keys.v.begin() + static_cast<int64_t>(at * d),
                     keys.v.begin() + static_cast<int64_t>((at + 1) * d),
                     keys.v.begin() + static_cast<int64_t>((at + 1) * d));
    break;
  case Mutant::kTileSkipped:
    order.erase(order.begin() + static_cast<int64_t>(seed % order.size()));
    break;
  default:
    break;
  }
}

const char *mutant_name(Mutant mutant) {
  static constexpr const char *kNames[] = {"(correct kernel)",
                                           "last key dropped",
                                           "one key past the end read",
                                           "one interior key dropped",
                                           "one row duplicated over its neighbour",
                                           "V rows of two keys swapped",
                                           "one tile skipped",
                                           "stale V tile",
                                           "O not rescaled once",
                                           "row sum not rescaled once",
                                           "row sum misses a lane in one tile",
                                           "block merge ignores maxima",
                                           "split merge ignores maxima",
                                           "split merge mixes ln and log2",
                                           "merge normaliser off by 2^-8",
                                           "scale rounded to bf16",
                                           "accumulator rounded to bf16 per tile",
                                           "scores rounded to bf16",
                                           "exp2 with 2^-11 error",
                                           "one tile's P kept to 4 bits",
                                           "output truncated",
                                           "softcap missing",
                                           "ALiBi distance off by one",
                                           "sink counted per split",
                                           "k_scale ignored"};
  static_assert(sizeof kNames / sizeof kNames[0] == static_cast<size_t>(Mutant::kCount));
  return kNames[static_cast<size_t>(mutant)];
}

} // namespace assay::oracle::test
