// SPDX-License-Identifier: Apache-2.0
// A call of assay_judge.h whose emulated kernel visits the keys of every list in an order of its
// own, right in all heads or with a mistake in some.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/abi/assay_judge.h"
#include "oracle/exact/dtype.h"
#include "oracle/judge/known_orders.h"
#include "oracle/tests/array_of.h"
#include "oracle/tests/emulation.h"

namespace assay::oracle::test {

/// What a kernel does that it should not, in one head of one row.
struct Mistake {
  /// Changes the keys that are seen, and the order in which.
  std::function<void(KeySet &, TileOrder &)> input = {};
  Mutant mutant = Mutant::kNone;
  float factor = 1.0f; ///< multiplies O before its last rounding
  float scale = 1.0f;  ///< multiplies the scale of the softmax
};

/** The last tokens of each request are its queries; each sees what lies up to its own position. */
struct OrderedCall {
  int heads = 8, kv_heads = 2, dim = 64, queries = 1;
  assay_dtype dtype = ASSAY_BF16;
  std::vector<int32_t> lengths{300};
  Emulation emulation;
  assay_arithmetic arithmetic{};
  std::vector<float> sinks; ///< [heads]; empty: none
  /// The order of a request's keys, for a row that sees the first `range.end` of them.
  std::function<TileOrder(int request, int head, const ListRange &range)> order;

  std::vector<uint16_t> q, k, v, o;
  std::vector<float> lse;
  bool with_lse = false; ///< an LSE shows a lost key by itself

  int rows() const { return static_cast<int>(lengths.size()) * queries; }
  int slots() const { return *std::max_element(lengths.begin(), lengths.end()); }
  int end_of(int row) const {
    return lengths[static_cast<size_t>(row / queries)] - queries + 1 + row % queries;
  }

  ListRange range_of(int row) const {
    return {lengths[static_cast<size_t>(row / queries)], 0, end_of(row)};
  }

  void draw(std::mt19937_64 &random) {
    const auto fill = [&](std::vector<uint16_t> &to, size_t count) {
      std::normal_distribution<float> normal;
      to.resize(count);
      for (size_t i = 0; i < count; ++i)
        store_element(dtype, to.data(), static_cast<int64_t>(i), normal(random));
    };
    const auto all = static_cast<size_t>(rows() * heads * dim);
    const auto cache = lengths.size() * static_cast<size_t>(slots() * kv_heads * dim);
    fill(q, all);
    fill(k, cache);
    fill(v, cache);
    o.assign(all, 0);
    lse.assign(static_cast<size_t>(rows() * heads), 0.0f);
    arithmetic = declared(emulation);
  }

  KeySet keys_of(int row, int head) const {
    KeySet keys;
    keys.head_dim = dim;
    const int kv_head = head / (heads / kv_heads), request = row / queries;
    for (int t = 0; t < end_of(row); ++t) {
      const int64_t at = ((int64_t{request} * slots() + t) * kv_heads + kv_head) * dim;
      for (int i = 0; i < dim; ++i) {
        keys.k.push_back(load_element(dtype, k.data(), at + i));
        keys.v.push_back(load_element(dtype, v.data(), at + i));
      }
    }
    return keys;
  }

  std::vector<float> query(int row, int head) const {
    std::vector<float> query;
    for (int i = 0; i < dim; ++i)
      query.push_back(load_element(dtype, q.data(), (row * heads + head) * dim + i));
    return query;
  }

  void run_head(int row, int head, const Mistake &mistake = {}) {
    KeySet keys = keys_of(row, head);
    TileOrder tiles = clip_order(order(row / queries, head, range_of(row)), 0, end_of(row));
    if (mistake.input) mistake.input(keys, tiles);
    keys.finish(dtype);
    Emulation own = emulation;
    own.mutant = mistake.mutant;
    own.round_output = mistake.factor == 1.0f;
    RowFeatures features;
    if (!sinks.empty()) features.sinks = true, features.sink = sinks[static_cast<size_t>(head)];
    const RowOutput out = emulate_row(query(row, head), keys, dtype, sm_scale() * mistake.scale,
                                      ASSAY_LSE_BASE_E, tiles, own, features);
    for (int i = 0; i < dim; ++i)
      store_element(dtype, o.data(), (row * heads + head) * dim + i,
                    out.o[static_cast<size_t>(i)] * mistake.factor);
    lse[static_cast<size_t>(row * heads + head)] = out.lse;
  }

  void run() {
    for (int row = 0; row < rows(); ++row)
      for (int head = 0; head < heads; ++head)
        run_head(row, head);
  }

  float sm_scale() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }

  assay_judge_attention_params params() const {
    assay_judge_attention_params p{};
    const int64_t requests = static_cast<int64_t>(lengths.size());
    p.struct_size = sizeof p;
    p.causal = 1;
    p.out = array(o.data(), dtype, {rows(), heads, dim});
    p.q = array(q.data(), dtype, {rows(), heads, dim});
    p.k = array(k.data(), dtype, {requests, slots(), kv_heads, dim});
    p.v = array(v.data(), dtype, {requests, slots(), kv_heads, dim});
    if (with_lse) p.lse = array(lse.data(), ASSAY_FP32, {rows(), heads});
    p.seq_lens = array(lengths.data(), ASSAY_INT32, {requests});
    if (!sinks.empty()) p.sinks = array(sinks.data(), ASSAY_FP32, {heads});
    p.sm_scale = sm_scale();
    p.window_left = p.window_right = -1;
    p.arithmetic = arithmetic;
    return p;
  }

  assay_judge_report judge(int threads = 0) const {
    assay_judge_attention_params p = params();
    p.threads = threads;
    assay_judge_report report{};
    report.struct_size = sizeof report;
    if (assay_judge_attention(&p, &report) != ASSAY_OK)
      throw std::runtime_error(assay_judge_last_error());
    return report;
  }
};

/** One key left out, as a kernel does that masks it: it keeps its place in its tile. */
inline std::function<void(KeySet &, TileOrder &)> lost(int first, int count) {
  return [=](KeySet &, TileOrder &order) {
    TileOrder kept;
    for (KeyTile tile : order) {
      KeyTile before = tile, behind = tile;
      before.end = std::min(tile.end, first);
      behind.begin = std::max(tile.begin, first + count);
      if (tile.end <= first || tile.begin >= first + count)
        kept.push_back(tile);
      else {
        if (before.begin < before.end) kept.push_back(before);
        if (behind.begin < behind.end) kept.push_back(behind);
      }
    }
    order = kept;
  };
}

/** V of a key, or K, taken from the next one. */
inline std::function<void(KeySet &, TileOrder &)> neighbour(int key, bool of_k = false) {
  return [=](KeySet &keys, TileOrder &) {
    const auto d = static_cast<std::ptrdiff_t>(keys.head_dim);
    std::vector<float> &values = of_k ? keys.k : keys.v;
    std::copy_n(values.begin() + (key + 1) * d, d, values.begin() + key * d);
  };
}

} // namespace assay::oracle::test
