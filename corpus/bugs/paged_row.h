// SPDX-License-Identifier: Apache-2.0
// What one thread of the attention knows of its query row.
#pragma once

#include "corpus/bugs/paged.h"

namespace assay::bugs {

struct Row {
  const assay_paged_params *p;
  Item item;
  int token, head, kv_head;
  int length, position; ///< length of the request, position of the token
  Range visible, keys;  ///< keys that the token sees; the item's part of them
  float scale = 1, cap = 0, slope = 0, sink = kNegInf; ///< base 2
  float q[256];

  bool sees(int key) const;
};

void make_row(Row &row, const assay_paged_params &p, const Item &item, int token, int head);

/// q . k, unscaled. `tile` is the first position of the key's tile.
float score(const Row &row, int tile, int key);
/// The value of a key, eight dims from `dim` on.
void load_values(const Row &row, int tile, int key, int dim, float *out);

/// An online softmax in base 2, not normalised.
struct State {
  float m = kNegInf, l = 0;
  float o[256] = {};
};

/// Keys of the row in [tile, tile + kTile).
void add_tile(const Row &row, int tile, State &state);
/// The sink as one more key, of value 0.
void add_sink(const Row &row, State &state);

} // namespace assay::bugs
