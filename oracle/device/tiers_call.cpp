// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/tiers_call.h"

#include <algorithm>
#include <map>
#include <utility>

#include "oracle/bounds/block_fma_step.h"
#include "oracle/exact/dtype.h"

namespace assay::oracle::device {
namespace {

/// The tiles of a row, state after state.
void append_tiles(const ErrorModel &model, const TileOrder &order, std::vector<RowTile> &out) {
  std::map<std::pair<int, int>, std::vector<RowTile>> states;
  for (const KeyTile &tile : order)
    if (tile.begin < tile.end) {
      std::vector<RowTile> &state = states[{tile.split, tile.state}];
      state.push_back({tile.begin, tile.end, static_cast<int32_t>(pv_blocks(model, tile)),
                       tile.p_parts == 2 ? 1 : 0, state.empty() ? 1 : 0});
    }
  for (const auto &[key, state] : states)
    out.insert(out.end(), state.begin(), state.end());
}

/// The bit model of block_fma.h takes the call, whatever its queries are.
bool has_kernel_scores(const Call &call, const assay_arithmetic &arithmetic) {
  return arithmetic.mma_block > 0 && arithmetic.mma_block <= block_fma::kMaxBlock &&
         arithmetic.mma_fraction_bits >= 0 &&
         arithmetic.mma_fraction_bits <= block_fma::kMaxFractionBits &&
         arithmetic.score_format == ASSAY_FORMAT_FP32 && !call.facts.features.mapped();
}

} // namespace

TierArrays arrays_of(const AttentionRows &rows, const KernelModel &model) {
  TierArrays arrays;
  AttentionReader reader(rows, model);
  arrays.shape = shape_of_call(rows, model, reader);
  const int sink = rows.sinks ? 1 : 0;
  arrays.first_tile.push_back(0);
  for (int row = 0; row < rows.out.rows(); ++row) {
    arrays.longest = std::max<int64_t>(arrays.longest, rows.keys(row) + sink);
    if (const TileOrder *order = reader.order(row))
      append_tiles(arrays.shape.model, *order, arrays.tiles);
    const auto last = static_cast<int64_t>(arrays.tiles.size());
    arrays.most_tiles = std::max(arrays.most_tiles, last - arrays.first_tile.back() + sink);
    arrays.first_tile.push_back(last);
  }
  if (is_fp8(rows.kv_dtype))
    for (int bits = 0; bits < 256; ++bits) {
      const auto byte = static_cast<unsigned char>(bits);
      arrays.fp8.push_back(load_element(rows.kv_dtype, &byte, 0));
    }
  return arrays;
}

TierCall make_tier_call(const AttentionRows &rows, const CallOutputs &outputs,
                        const KernelModel &model, const TierArrays &arrays, const Place &place) {
  TierCall call{};
  call.base = make_call(rows, outputs, arrays.shape, place);
  call.list = placed(rows.list, place);
  const RowTile *tiles = placed(arrays.tiles, place);
  call.first_tile = placed(arrays.first_tile, place);
  call.fp8 = placed(arrays.fp8, place);
  if (model.order) call.tiles = tiles;
  if (call.base.model.p_format != nullptr) call.p_format = *call.base.model.p_format;
  call.replay_scores = model.replay_scores && has_kernel_scores(call.base, model.arithmetic);
  call.mma_block = model.arithmetic.mma_block;
  call.mma_fraction_bits = model.arithmetic.mma_fraction_bits;
  call.pairs = int64_t{rows.out.rows()} * rows.out.heads;
  call.scratch = {arrays.longest, arrays.most_tiles, 1, rows.out.dims};
  return call;
}

} // namespace assay::oracle::device

namespace assay::oracle {

TierReport report_of(const RowOutputs &out, bool has_lse, std::vector<TierRow> pairs,
                     std::span<const uint64_t> budgets) {
  TierReport report;
  const int heads = out.heads;
  const auto elements = static_cast<uint64_t>(out.dims) + (has_lse ? 1 : 0);
  for (size_t at = 0; at < pairs.size(); ++at) {
    const TierRow &pair = pairs[at];
    const RowHead where{static_cast<int>(at) / heads, static_cast<int>(at) % heads};
    if (pair.inside == 0) {
      report.open.push_back(where);
      continue;
    }
    const auto ratio = [&](int i) { return pair.worst[i] < 0.0 ? NAN : pair.worst[i]; };
    Report row;
    row.elements = row.claimed = elements;
    row.worst_ratio_t0 = pair.worst[0];
    row.worst_ratio_t1 = ratio(1);
    row.worst_ratio_t2 = ratio(2);
    row.worst_ratio_lse = ratio(3);
    const TierElement &e = pair.element;
    row.worst = {where.row,   where.head, e.dim,   e.tier,           e.got,
                 e.reference, e.budget,   e.ratio, Verdict::kInside, Reason::kNone};
    report.decided.merge(row);
  }
  BudgetSizes sizes;
  sizes.add(budgets.first<BudgetSizes::kCounts>());
  report.decided.budgets = sizes;
  report.budgets.assign(budgets.begin(), budgets.end());
  report.rows = std::move(pairs);
  return report;
}

std::string tiers_refuse(const AttentionRows &rows, const KernelModel &model) {
  constexpr int kMostKeys = 1 << 18;
  if (std::string reason = device::refused(rows, model); !reason.empty()) return reason;
  const auto bytes = static_cast<uintptr_t>(element_size(rows.kv_dtype));
  for (const KeyPool &pool : rows.pools)
    if (reinterpret_cast<uintptr_t>(pool.k) % bytes != 0 ||
        reinterpret_cast<uintptr_t>(pool.v) % bytes != 0)
      return "K or V in parts of elements";
  for (int row = 0; row < rows.out.rows(); ++row)
    if (rows.keys(row) > kMostKeys) return "a row of more than 2^18 keys";
  return "";
}

} // namespace assay::oracle
