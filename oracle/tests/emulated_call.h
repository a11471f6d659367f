// SPDX-License-Identifier: Apache-2.0
// A call of several rows and heads, run by an emulated kernel: what the GPU's bodies take.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "oracle/judge/judge.h"
#include "oracle/tests/campaign.h"

namespace assay::oracle::test {

/// Rows of one emulated kernel: lists of keys in regimes of their own, and query heads that share
/// them.
struct CallDraw {
  Case common; ///< without a row: types, arithmetic, scale, features
  assay_dtype kv_dtype = ASSAY_BF16;
  int dim = 64, heads = 1;
  bool wide = false, formats = false; ///< the kind of its errors
  struct List {
    Regime regime;
    RowData row;
    std::vector<std::vector<float>> q; ///< [heads]
    TileOrder order;
    int hidden = 0; ///< keys in front of those that the rows see
  };
  std::vector<List> lists;
};

CallDraw draw_call(std::mt19937_64 &random, int max_keys);

/// The call in one block of memory. Pages are shuffled; what no row sees is garbage.
class EmulatedCall {
public:
  EmulatedCall(const CallDraw &draw, std::mt19937_64 &random);

  const std::vector<std::byte> &block() const { return block_; }
  /// With the block at `base`.
  AttentionRows rows_at(const std::byte *base) const;
  CallOutputs outputs_at(const std::byte *base) const;

  CallOutputs outputs() const { return outputs_at(block_.data()); }
  AttentionRows rows; ///< in this process
  KernelModel model;  ///< with the order of keys
  KernelModel model_without_order() const { return {.arithmetic = model.arithmetic}; }

private:
  void place(const CallDraw &draw, std::mt19937_64 &random);
  void place_list(const CallDraw &draw, const CallDraw::List &list);
  void store(const CallDraw &draw, std::mt19937_64 &random);
  void run(const CallDraw &draw);

  std::vector<std::byte> block_;
  size_t v_ = 0, q_ = 0, o_ = 0, lse_ = 0; ///< where they begin; K begins at 0
  int page_ = 16;
  std::vector<int> pages_; ///< pages of the pool, shuffled
  size_t next_page_ = 0;
};

} // namespace assay::oracle::test
