// SPDX-License-Identifier: Apache-2.0
// How far the outputs of a row are from what an order of keys would give: what orders are ranked
// by. No bound and no verdict: an order that ranks first is held to T1 like any other.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "oracle/bounds/row_work.h"

namespace assay::oracle {

/**
 * The rounding of a weight depends on the running maximum at its tile, so each order gives outputs
 * of its own: exact sums of rounded weights. `of` is the mean square of their distance from what
 * was written, in half spacings of the output: 1/3 or so for the order that the kernel had. The
 * outputs with the smallest spacings, which show most, are looked at.
 */
class OrderResidual {
public:
  /// `work` as prepare_row gives it, of the row without an order. Views; the owners outlive this.
  OrderResidual(const RowProblem &problem, const RowWork &work, std::span<const float> got);

  /// Without tiles: of weights that are not rounded.
  double of(const TileOrder &order);

private:
  static constexpr int kMostDims = 16, kBlock = 16;
  using Sums = std::array<double, kMostDims + 1>; ///< of values, and of weights

  int top_of(int begin, int end) const;
  void add_key(Sums &sums, int key, double up, double down) const;
  void add_range(Sums &sums, int top, int begin, int end);
  const Sums &block_sums(int top, int block);

  const RowProblem &problem_;
  const RowWork &work_;
  int dims_ = 0;
  double factor_ = 1.0;       ///< from sums of weighted values to outputs
  std::vector<float> values_; ///< [keys, dims_]
  std::vector<int> tops_;     ///< key with the largest logit of each block
  Sums exact_{};
  std::array<double, kMostDims> got_{}, unit_{};
  /// Sums of rounding errors of a block under the maximum of key `top`: few of them differ.
  struct Entry {
    int top;
    Sums sums;
  };
  std::vector<std::vector<Entry>> blocks_;
};

} // namespace assay::oracle
