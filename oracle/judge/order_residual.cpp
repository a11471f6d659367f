// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/order_residual.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "oracle/exact/sums.h"

namespace assay::oracle {

OrderResidual::OrderResidual(const RowProblem &problem, const RowWork &work,
                             std::span<const float> got)
    : problem_(problem), work_(work) {
  const KeySet &keys = *problem.keys;
  const size_t n = keys.visible(), width = static_cast<size_t>(keys.value_dim());
  const RowFeatures &features = problem.features;
  factor_ = static_cast<double>(features.v_scale) / features.o_scale;
  std::vector<double> sums(width), magnitudes(width);
  weighted_sums(keys.v.data(), n, static_cast<int>(width), work.weight.data(), sums.data());
  weighted_magnitudes(keys.v.data(), n, static_cast<int>(width), work.weight.data(),
                      magnitudes.data());
  std::vector<size_t> order(width);
  std::iota(order.begin(), order.end(), size_t{0});
  dims_ = static_cast<int>(std::min<size_t>(width, kMostDims));
  std::partial_sort(order.begin(), order.begin() + dims_, order.end(), [&](size_t a, size_t b) {
    return std::pair(std::fabs(sums[a]), a) < std::pair(std::fabs(sums[b]), b);
  });
  for (int i = 0; i < dims_; ++i) {
    const size_t at = order[static_cast<size_t>(i)];
    exact_[static_cast<size_t>(i)] = sums[at];
    got_[static_cast<size_t>(i)] = got[at];
    // What accumulators round is not known: a few roundings of the largest they may hold.
    const double noise = 4 * work.model.kappa * magnitudes[at] / work.z * std::fabs(factor_);
    unit_[static_cast<size_t>(i)] = half_ulp(work.facts.output, std::fabs(got[at])) + noise;
  }
  exact_[kMostDims] = work.z;
  values_.resize(n * static_cast<size_t>(dims_));
  for (size_t j = 0; j < n; ++j)
    for (int i = 0; i < dims_; ++i)
      values_[j * static_cast<size_t>(dims_) + static_cast<size_t>(i)] =
          keys.value(j)[order[static_cast<size_t>(i)]];
  const size_t blocks = (n + kBlock - 1) / kBlock;
  blocks_.resize(blocks);
  for (size_t block = 0; block < blocks; ++block) {
    const auto first = static_cast<int>(block) * kBlock;
    int top = first;
    for (int j = first; j < std::min<int>(first + kBlock, static_cast<int>(n)); ++j)
      if (work.x[static_cast<size_t>(j)] > work.x[static_cast<size_t>(top)]) top = j;
    tops_.push_back(top);
  }
}

/// The key with the largest logit of a range.
int OrderResidual::top_of(int begin, int end) const {
  int top = begin;
  const auto look = [&](int j) {
    if (work_.x[static_cast<size_t>(j)] > work_.x[static_cast<size_t>(top)]) top = j;
  };
  int j = begin;
  for (; j < end && j % kBlock != 0; ++j)
    look(j);
  for (; j + kBlock <= end; j += kBlock)
    look(tops_[static_cast<size_t>(j / kBlock)]);
  for (; j < end; ++j)
    look(j);
  return top;
}

/// `up` takes a weight of the row to the scale on which P is rounded, `down` back.
void OrderResidual::add_key(Sums &sums, int key, double up, double down) const {
  const double weight = work_.weight[static_cast<size_t>(key)];
  const double error = round_to(*work_.model.p_format, weight * up) * down - weight;
  const float *v = values_.data() + static_cast<size_t>(key) * static_cast<size_t>(dims_);
  for (int i = 0; i < dims_; ++i)
    sums[static_cast<size_t>(i)] += error * static_cast<double>(v[i]);
  sums[kMostDims] += error;
}

const OrderResidual::Sums &OrderResidual::block_sums(int top, int block) {
  std::vector<Entry> &entries = blocks_[static_cast<size_t>(block)];
  for (const Entry &entry : entries)
    if (entry.top == top) return entry.sums;
  Entry entry{top, {}};
  const double y = work_.x[static_cast<size_t>(top)] - work_.x_max - work_.model.p_scale_log2;
  const double up = std::exp2(-y), down = std::exp2(y);
  for (int j = block * kBlock; j < (block + 1) * kBlock; ++j)
    add_key(entry.sums, j, up, down);
  entries.push_back(entry);
  return entries.back().sums;
}

void OrderResidual::add_range(Sums &sums, int top, int begin, int end) {
  const double y = work_.x[static_cast<size_t>(top)] - work_.x_max - work_.model.p_scale_log2;
  const double up = std::exp2(-y), down = std::exp2(y);
  int j = begin;
  for (; j < end && j % kBlock != 0; ++j)
    add_key(sums, j, up, down);
  for (; j + kBlock <= end; j += kBlock) {
    const Sums &block = block_sums(top, j / kBlock);
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += block[i];
  }
  for (; j < end; ++j)
    add_key(sums, j, up, down);
}

double OrderResidual::of(const TileOrder &order) {
  std::map<std::pair<int, int>, int> running; // the key at the maximum of each state
  Sums errors{};
  for (const KeyTile &tile : order) {
    if (tile.begin >= tile.end) continue;
    const int own = top_of(tile.begin, tile.end);
    const auto [at, first] = running.try_emplace({tile.split, tile.state}, own);
    if (!first && work_.x[static_cast<size_t>(own)] > work_.x[static_cast<size_t>(at->second)])
      at->second = own;
    add_range(errors, at->second, tile.begin, tile.end);
  }
  const bool rounded_sum = problem_.arithmetic.sum_format == ASSAY_FORMAT_CALL;
  const double z = exact_[kMostDims] + (rounded_sum ? errors[kMostDims] : 0.0);
  double sum = 0.0;
  for (size_t i = 0; i < static_cast<size_t>(dims_); ++i) {
    const double off = got_[i] - factor_ * (exact_[i] + errors[i]) / z;
    sum += off * off / (unit_[i] * unit_[i]);
  }
  return sum / dims_;
}

} // namespace assay::oracle
