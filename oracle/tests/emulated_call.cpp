// SPDX-License-Identifier: Apache-2.0
#include "oracle/tests/emulated_call.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "oracle/exact/dtype.h"
#include "oracle/tests/feature_campaign.h"
#include "oracle/tests/flat_order.h"

namespace assay::oracle::test {
namespace {

void draw_features(CallDraw &call, std::mt19937_64 &random) {
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  RowFeatures &f = call.common.features;
  call.kv_dtype = call.common.dtype;
  if (pick(4) == 0) {
    call.kv_dtype = pick(2) ? ASSAY_E4M3 : ASSAY_E5M2;
    f.fp8 = true;
    f.k_scale = draw_scale(pick, 9);
    f.v_scale = draw_scale(pick, 9);
    call.common.emulation.rounded_before_scale = pick(2) != 0;
  }
  if (pick(8) == 0)
    f.softcap = std::array{0.3f, 1.0f, 30.0f, 50.0f, 1000.0f}[static_cast<size_t>(pick(5))];
  if (pick(8) == 0) {
    f.alibi = true;
    f.slope = draw_slope(pick);
  }
  if (pick(5) == 0) {
    f.sinks = true;
    f.sink = draw_sink(pick, 10);
  }
}

} // namespace

CallDraw draw_call(std::mt19937_64 &random, int max_keys) {
  const auto pick = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  CallDraw call;
  call.common = draw_case(random, 2);
  call.wide = pick(2) != 0;
  call.formats = pick(2) != 0;
  if (call.wide) widen_errors(call.common, random);
  if (call.formats) vary_formats(call.common, random);
  call.dim = call.common.row.keys.head_dim;
  draw_features(call, random);
  call.heads = 1 << pick(3);
  const Emulation &e = call.common.emulation;
  const int lists = 1 + pick(6);
  for (int i = 0; i < lists; ++i) {
    CallDraw::List list;
    list.regime = static_cast<Regime>(pick(static_cast<int>(Regime::kCount)));
    const int limit = pick(60) == 0 ? 8 * max_keys : pick(4) == 0 ? 40 : max_keys;
    const int keys = 1 + pick(limit);
    list.row = draw_row(list.regime, call.common.dtype, keys, call.dim, random);
    if (call.common.features.fp8) narrow(list.row.keys, call.kv_dtype);
    list.q.push_back(list.row.q);
    for (int head = 1; head < call.heads; ++head)
      list.q.push_back(draw_row(list.regime, call.common.dtype, 1, call.dim, random).q);
    list.order = deal_tiles(keys, e.tile, call.common.splits, e.states, e.p_parts);
    if (pick(3) == 0) list.hidden = pick(100);
    call.lists.push_back(std::move(list));
  }
  return call;
}

EmulatedCall::EmulatedCall(const CallDraw &draw, std::mt19937_64 &random) {
  place(draw, random);
  store(draw, random);
  const Case &c = draw.common;
  model.arithmetic = declared(c.emulation);
  model.arithmetic.max_splits = c.splits;
  model.replay_scores = c.emulation.low_subnormals && c.emulation.block > 0 &&
                        c.emulation.unit_q_format == ASSAY_FORMAT_FP32;
  model.order = flat_order(static_cast<int>(draw.lists.size()), [&](int i) {
    TileOrder order = draw.lists[static_cast<size_t>(i)].order;
    for (KeyTile &tile : order) {
      tile.begin += draw.lists[static_cast<size_t>(i)].hidden;
      tile.end += draw.lists[static_cast<size_t>(i)].hidden;
    }
    return order;
  });
  rows = rows_at(block_.data());
  run(draw);
}

/// Where everything lies; the rows' bases stay null.
void EmulatedCall::place(const CallDraw &draw, std::mt19937_64 &random) {
  const Case &c = draw.common;
  rows.out.dtype = rows.q_dtype = c.dtype;
  rows.out.lse_base = c.base;
  rows.out.dims = rows.head_dim = draw.dim;
  rows.out.heads = draw.heads;
  rows.out.out_stride_head = rows.q_stride_head = draw.dim;
  rows.out.lse_stride_head = 1;
  rows.kv_dtype = draw.kv_dtype;
  rows.sm_scale = c.sm_scale;
  rows.softcap = c.features.softcap;
  rows.alibi = c.features.alibi;
  rows.sinks = c.features.sinks;
  for (int head = 0; head < draw.heads; ++head)
    rows.heads.push_back(
        {0, c.features.k_scale, c.features.v_scale, c.features.slope, c.features.sink});
  page_ = std::array{1, 7, 16, 64}[random() % 4];
  int pages = 0;
  for (const CallDraw::List &list : draw.lists)
    pages += (list.hidden + static_cast<int>(list.row.keys.size()) + page_ - 1) / page_;
  for (int i = 0; i < pages; ++i)
    pages_.push_back(i);
  std::shuffle(pages_.begin(), pages_.end(), random);
  rows.first_run.push_back(0);
  for (const CallDraw::List &list : draw.lists)
    place_list(draw, list);
  const auto whole = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  const size_t cache = whole(static_cast<size_t>(pages * page_ * draw.dim) *
                             static_cast<size_t>(element_size(draw.kv_dtype)));
  const size_t pairs = draw.lists.size() * static_cast<size_t>(draw.heads);
  v_ = cache;
  q_ = 2 * cache;
  o_ = q_ + whole(pairs * static_cast<size_t>(draw.dim) * 2);
  lse_ = o_ + whole(pairs * static_cast<size_t>(draw.dim) * 2);
  block_.resize(lse_ + whole(pairs * sizeof(float)));
}

void EmulatedCall::place_list(const CallDraw &draw, const CallDraw::List &list) {
  const int keys = list.hidden + static_cast<int>(list.row.keys.size());
  for (int position = 0; position < keys; position += page_) {
    const int64_t at = int64_t{pages_[next_page_++]} * page_ * draw.dim;
    rows.runs.push_back({position, std::min(page_, keys - position), 0, at, at});
  }
  const auto row = static_cast<int64_t>(rows.list.size());
  rows.first_run.push_back(static_cast<int64_t>(rows.runs.size()));
  rows.level_position.push_back(0);
  rows.list.push_back(static_cast<int32_t>(row));
  rows.begin.push_back(list.hidden);
  rows.end.push_back(keys);
  rows.q_at.push_back(row * draw.heads * draw.dim);
  rows.out.o_at.push_back(row * draw.heads * draw.dim);
  rows.out.lse_at.push_back(row * draw.heads);
}

AttentionRows EmulatedCall::rows_at(const std::byte *base) const {
  AttentionRows at = rows;
  at.pools = {{.k = base,
               .v = base + v_,
               .k_stride_token = rows.head_dim,
               .k_stride_head = rows.head_dim,
               .v_stride_token = rows.head_dim,
               .v_stride_head = rows.head_dim}};
  at.q = base + q_;
  return at;
}

CallOutputs EmulatedCall::outputs_at(const std::byte *base) const {
  return {base + o_, reinterpret_cast<const float *>(base + lse_)};
}

void EmulatedCall::store(const CallDraw &draw, std::mt19937_64 &random) {
  for (std::byte &byte : block_)
    byte = static_cast<std::byte>(random());
  const int dim = draw.dim;
  for (size_t list = 0; list < draw.lists.size(); ++list) {
    const CallDraw::List &from = draw.lists[list];
    for (int64_t i = rows.first_run[list]; i < rows.first_run[list + 1]; ++i) {
      const KeyRun &run = rows.runs[static_cast<size_t>(i)];
      for (int key = std::max(run.position, from.hidden); key < run.position + run.count; ++key)
        for (int x = 0; x < dim; ++x) {
          const auto seen = static_cast<size_t>(key - from.hidden);
          const int64_t at = run.k_at + int64_t{key - run.position} * dim + x;
          store_element(draw.kv_dtype, block_.data(), at, from.row.keys.key(seen)[x]);
          store_element(draw.kv_dtype, block_.data() + v_, at, from.row.keys.value(seen)[x]);
        }
    }
    for (int head = 0; head < draw.heads; ++head)
      for (int x = 0; x < dim; ++x)
        store_element(draw.common.dtype, block_.data() + q_, rows.q_at[list] + head * dim + x,
                      from.q[static_cast<size_t>(head)][static_cast<size_t>(x)]);
  }
}

void EmulatedCall::run(const CallDraw &draw) {
  const Case &c = draw.common;
  for (size_t list = 0; list < draw.lists.size(); ++list)
    for (int head = 0; head < draw.heads; ++head) {
      const CallDraw::List &from = draw.lists[list];
      Emulation e = c.emulation;
      e.seed += 0x9E3779B97F4A7C15ull * (list * 16 + static_cast<size_t>(head));
      const RowOutput out = emulate_row(from.q[static_cast<size_t>(head)], from.row.keys, c.dtype,
                                        c.sm_scale, c.base, from.order, e, c.features);
      for (int x = 0; x < draw.dim; ++x)
        store_element(c.dtype, block_.data() + o_,
                      rows.out.o_at[list] + int64_t{head} * draw.dim + x,
                      out.o[static_cast<size_t>(x)]);
      std::memcpy(block_.data() + lse_ +
                      (static_cast<size_t>(rows.out.lse_at[list]) + static_cast<size_t>(head)) *
                          sizeof(float),
                  &out.lse, sizeof(float));
    }
}

} // namespace assay::oracle::test
