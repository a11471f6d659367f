// SPDX-License-Identifier: Apache-2.0
// assay_judge.h: a right call is inside whatever its layout, a wrong element is named, and what
// does not fit is refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/abi/assay_judge.h"
#include "oracle/exact/dtype.h"
#include "oracle/judge/judge_entry.h"
#include "oracle/rows/build.h"
#include "oracle/tests/array_of.h"
#include "oracle/tests/emulation.h"

namespace assay::oracle::test {
namespace {

constexpr int kDim = 16, kKvHeads = 2, kHeads = 6, kPage = 8, kPages = 12, kColumns = 4;

/// Ragged queries over pages in a shuffled table, and what an emulated kernel wrote for them.
struct Call {
  std::vector<int64_t> indptr{0, 3, 4, 4, 6}; // the third request has no query
  std::vector<int32_t> lengths{20, 9, 5, 2}, table;
  std::vector<uint16_t> q, k, v, o;
  std::vector<float> lse;
  Emulation emulation;
  assay_judge_attention_params params{};

  Call() {
    emulation.tile = 16;
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<uint16_t> &to, int count) {
      to.resize(static_cast<size_t>(count));
      for (int i = 0; i < count; ++i)
        store_element(ASSAY_BF16, to.data(), i, normal(random));
    };
    fill(q, 6 * kHeads * kDim);
    fill(k, kPages * kPage * kKvHeads * kDim);
    fill(v, kPages * kPage * kKvHeads * kDim);
    o.resize(q.size());
    lse.resize(6 * kHeads);
    table.assign(4 * kColumns, 2147480000); // garbage behind the end
    std::vector<int32_t> ids(kPages);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random);
    for (int r = 0, next = 0; r < 4; ++r)
      for (int p = 0; p * kPage < lengths[r]; ++p)
        table[r * kColumns + p] = ids[next++];
    params.struct_size = sizeof params;
    params.causal = 1;
    params.out = array(o.data(), ASSAY_BF16, {6, kHeads, kDim});
    params.q = array(q.data(), ASSAY_BF16, {6, kHeads, kDim});
    params.k = array(k.data(), ASSAY_BF16, {kPages, kPage, kKvHeads, kDim});
    params.v = array(v.data(), ASSAY_BF16, {kPages, kPage, kKvHeads, kDim});
    params.lse = array(lse.data(), ASSAY_FP32, {6, kHeads});
    params.page_table = array(table.data(), ASSAY_INT32, {4, kColumns});
    params.seq_lens = array(lengths.data(), ASSAY_INT32, {4});
    params.qo_indptr = array(indptr.data(), ASSAY_INT64, {5});
    params.sm_scale = 0.25f;
    params.window_left = params.window_right = -1;
    params.arithmetic = declared(emulation);
    run();
  }

  /// The keys that query row `row` of request `r` sees, by a page walk of its own.
  KeySet keys_of(int r, int row, int kv_head) const {
    KeySet keys;
    keys.head_dim = kDim;
    const int count = static_cast<int>(indptr[r + 1] - indptr[r]);
    const int position = lengths[r] - count + row - static_cast<int>(indptr[r]);
    for (int t = 0; t <= position; ++t) {
      const int page = table[r * kColumns + t / kPage];
      const int at = ((page * kPage + t % kPage) * kKvHeads + kv_head) * kDim;
      for (int i = 0; i < kDim; ++i) {
        keys.k.push_back(load_element(ASSAY_BF16, k.data(), at + i));
        keys.v.push_back(load_element(ASSAY_BF16, v.data(), at + i));
      }
    }
    return keys;
  }
  void run() {
    for (int r = 0; r < 4; ++r)
      for (int row = static_cast<int>(indptr[r]); row < indptr[r + 1]; ++row)
        for (int h = 0; h < kHeads; ++h) {
          std::vector<float> query;
          for (int i = 0; i < kDim; ++i)
            query.push_back(load_element(ASSAY_BF16, q.data(), (row * kHeads + h) * kDim + i));
          const KeySet keys = keys_of(r, row, h / 3);
          const RowOutput out =
              emulate_row(query, keys, ASSAY_BF16, 0.25f, ASSAY_LSE_BASE_E,
                          deal_tiles(static_cast<int>(keys.size()), 16, 1, 1), emulation);
          for (int i = 0; i < kDim; ++i)
            store_element(ASSAY_BF16, o.data(), (row * kHeads + h) * kDim + i, out.o[i]);
          lse[row * kHeads + h] = out.lse;
        }
  }
  assay_judge_report judge() const {
    assay_judge_report report{};
    report.struct_size = sizeof report;
    EXPECT_EQ(assay_judge_attention(&params, &report), ASSAY_OK) << assay_judge_last_error();
    return report;
  }
};

TEST(JudgeApi, ARightCallIsInsideAndEveryElementIsLookedAt) {
  const Call call;
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE)
      << report.worst.reason << " row " << report.worst.row;
  EXPECT_EQ(report.elements, 6u * kHeads * (kDim + 1));
  EXPECT_EQ(report.claimed, report.elements);
  EXPECT_EQ(report.rows_judged, 6);
  EXPECT_LT(report.worst_ratio, 1.0);
  EXPECT_GT(report.worst_ratio_row, 0.0);
  EXPECT_LT(report.worst_ratio_row, 1.0);
  EXPECT_GT(report.median_budget, 0.0);
}

TEST(JudgeApi, OneWrongElementIsNamed) {
  Call call;
  const int at = (4 * kHeads + 5) * kDim + 7;
  store_element(ASSAY_BF16, call.o.data(), at, load_element(ASSAY_BF16, call.o.data(), at) + 0.5f);
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_OUTSIDE);
  EXPECT_EQ(report.findings, 1u);
  EXPECT_EQ(report.worst.row, 4);
  EXPECT_EQ(report.worst.head, 5);
  EXPECT_EQ(report.worst.dim, 7);
  EXPECT_STREQ(report.worst.reason, "outside the interval");
  const assay_judge_budget &b = report.worst.budget;
  EXPECT_NEAR(b.weights + b.p_rounding + b.accumulation + b.normalisation + b.merge +
                  b.output_rounding + b.flush,
              report.worst.allowed, 1e-5 * report.worst.allowed);
}

TEST(JudgeApi, SaysWhatAPassIsWorth) {
  const Call call;
  assay_judge_sharpness sharpness{};
  EXPECT_EQ(assay_judge_attention_sharpness(&call.params, &sharpness), ASSAY_INVALID_ARGUMENT);
  EXPECT_STREQ(assay_judge_last_error(), "report's struct_size is 0, expected 32");
  sharpness.struct_size = sizeof sharpness;
  EXPECT_EQ(assay_judge_attention_sharpness(&call.params, nullptr), ASSAY_INVALID_ARGUMENT);
  ASSERT_EQ(assay_judge_attention_sharpness(&call.params, &sharpness), ASSAY_OK);
  EXPECT_GT(sharpness.scaling, 0.0);
  EXPECT_GT(sharpness.sm_scale, 0.0);
  EXPECT_TRUE(std::isnan(sharpness.lost_weight)); // rows this short do not show the loss of a key
}

TEST(JudgeApi, TheWorstElementIsNamedNotTheFirst) {
  Call call;
  for (const auto &[row, by] : {std::pair{1, 0.125f}, {4, 2.0f}, {5, 0.25f}}) {
    const int at = row * kHeads * kDim;
    store_element(ASSAY_BF16, call.o.data(), at, load_element(ASSAY_BF16, call.o.data(), at) + by);
  }
  const assay_judge_report report = call.judge();
  EXPECT_EQ(report.findings, 3u);
  EXPECT_EQ(report.worst.row, 4);
  EXPECT_EQ(report.worst.ratio, report.worst_ratio);
}

/// Expects equal reports for two descriptions of the same memory.
void expect_same(const assay_judge_report &a, const assay_judge_report &b) {
  EXPECT_EQ(a.verdict, b.verdict);
  EXPECT_EQ(a.worst_ratio, b.worst_ratio);
  EXPECT_EQ(a.worst_ratio_lse, b.worst_ratio_lse);
  EXPECT_EQ(a.claimed, b.claimed);
}

TEST(JudgeApi, LayoutsOfTheSameCallGetTheSameVerdict) {
  const Call plain;
  const assay_judge_report expected = plain.judge();
  {
    Call flat; // a table of entries with offsets
    std::vector<int32_t> entries;
    std::vector<int32_t> offsets{0};
    for (int r = 0; r < 4; ++r) {
      for (int p = 0; p * kPage < flat.lengths[r]; ++p)
        entries.push_back(flat.table[r * kColumns + p]);
      offsets.push_back(static_cast<int32_t>(entries.size()));
    }
    flat.params.page_table =
        array(entries.data(), ASSAY_INT32, {static_cast<int64_t>(entries.size())});
    flat.params.page_indptr = array(offsets.data(), ASSAY_INT32, {5});
    expect_same(flat.judge(), expected);
  }
  {
    Call heads_first; // [page, head, slot, dim] by strides
    std::vector<uint16_t> hnd(heads_first.k.size());
    for (int p = 0; p < kPages; ++p)
      for (int s = 0; s < kPage; ++s)
        for (int h = 0; h < kKvHeads; ++h)
          std::memcpy(&hnd[((p * kKvHeads + h) * kPage + s) * kDim],
                      &heads_first.k[((p * kPage + s) * kKvHeads + h) * kDim], kDim * 2);
    heads_first.params.k = array(hnd.data(), ASSAY_BF16, {kPages, kPage, kKvHeads, kDim},
                                 {kPage * kKvHeads * kDim, kDim, kPage * kDim, 1});
    expect_same(heads_first.judge(), expected);
  }
  {
    Call apart; // K at page 2 p, V at 2 p + 1 of one pool, each with ids of its own
    std::vector<uint16_t> pool(2 * apart.k.size());
    const size_t page = kPage * kKvHeads * kDim;
    std::vector<int64_t> k_ids, v_ids;
    for (size_t p = 0; p < kPages; ++p) {
      std::memcpy(&pool[2 * p * page], &apart.k[p * page], page * 2);
      std::memcpy(&pool[(2 * p + 1) * page], &apart.v[p * page], page * 2);
    }
    for (int32_t id : apart.table) {
      k_ids.push_back(2 * int64_t{id});
      v_ids.push_back(2 * int64_t{id} + 1);
    }
    apart.params.k = apart.params.v =
        array(pool.data(), ASSAY_BF16, {2 * kPages, kPage, kKvHeads, kDim});
    apart.params.page_table = array(k_ids.data(), ASSAY_INT64, {4, kColumns});
    apart.params.v_page_table = array(v_ids.data(), ASSAY_INT64, {4, kColumns});
    expect_same(apart.judge(), expected);
  }
}

TEST(JudgeApi, AWindowOnBothSidesIsThatOfTheMask) {
  Call call;
  call.params.causal = 0;
  call.params.window_right = 0; // as causal
  expect_same(call.judge(), Call().judge());
  call.params.window_left = 1 << 30;
  expect_same(call.judge(), Call().judge());
  call.params.window_left = 3; // the kernel saw more
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_OUTSIDE);
  call.params.window_left = -1;
  call.params.window_right = 1;
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_OUTSIDE);
}

TEST(JudgeApi, EmptyRowsFollowTheConventionOfTheCall) {
  Call call;
  call.lengths[3] = 1; // two queries: the first stands in front of the first key
  call.run();
  EXPECT_EQ(call.lse[4 * kHeads], -INFINITY);
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_INSIDE);
  call.params.empty_lse = ASSAY_EMPTY_EITHER;
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_INSIDE);
  call.params.empty_lse = ASSAY_EMPTY_PLUS_INF;
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_OUTSIDE);
  for (int h = 0; h < kHeads; ++h)
    call.lse[4 * kHeads + h] = INFINITY;
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_INSIDE);
  call.params.empty_lse = ASSAY_EMPTY_MINUS_INF;
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_OUTSIDE);
}

TEST(JudgeApi, ChosenRowsHoldTheFirstLastAndLongest) {
  Call call;
  call.params.max_rows = 3;
  EXPECT_EQ(call.judge().rows_judged, 3);
  call.lse[2 * kHeads] += 1; // the last query of the longest request
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_OUTSIDE);
  call = Call();
  call.params.max_rows = 3;
  call.lse[5 * kHeads] += 1;
  EXPECT_EQ(call.judge().verdict, ASSAY_JUDGE_OUTSIDE);
}

TEST(JudgeApi, ManyThreadsSayWhatOneSays) {
  Call call;
  call.params.threads = 1;
  const assay_judge_report one = call.judge();
  call.params.threads = 7;
  expect_same(call.judge(), one);
}

// A header that ended in front of the arithmetic, and a report in front of the worst element.
TEST(JudgeApi, StructsOfEarlierHeadersAreContinuedAndNotWrittenBehind) {
  const Call call;
  const auto now = continued(call.params, offsetof(assay_judge_attention_params, arithmetic));
  const assay_arithmetic none{};
  EXPECT_EQ(now.sm_scale, call.params.sm_scale);
  EXPECT_EQ(std::memcmp(&now.arithmetic, &none, sizeof none), 0);
  assay_judge_report whole{}, earlier;
  whole.verdict = ASSAY_JUDGE_UNDECIDED;
  whole.median_budget = 3;
  whole.worst.row = 7;
  std::memset(&earlier, 0x55, sizeof earlier);
  earlier.struct_size = offsetof(assay_judge_report, worst);
  give(whole, earlier);
  EXPECT_EQ(earlier.struct_size, offsetof(assay_judge_report, worst));
  EXPECT_EQ(earlier.verdict, ASSAY_JUDGE_UNDECIDED);
  EXPECT_EQ(earlier.median_budget, 3);
  EXPECT_EQ(earlier.worst.row, 0x55555555);
}

TEST(JudgeApi, WhatDoesNotFitIsRefusedByName) {
  const auto refused = [](auto spoil, const std::string &words,
                          assay_status status = ASSAY_INVALID_ARGUMENT) {
    Call call;
    spoil(call);
    assay_judge_report report{};
    report.struct_size = sizeof report;
    EXPECT_EQ(assay_judge_attention(&call.params, &report), status) << words;
    EXPECT_NE(std::string(assay_judge_last_error()).find(words), std::string::npos)
        << assay_judge_last_error() << " lacks " << words;
  };
  refused([](Call &c) { c.params.q.data = nullptr; }, "q is not given");
  refused([](Call &c) { c.params.q.shape[0] = 5; }, "q's axis 0 is 5 long");
  refused([](Call &c) { c.params.q.dtype = ASSAY_FP32; }, "q is fp32, judged are fp16, bf16",
          ASSAY_UNSUPPORTED);
  refused([](Call &c) { c.params.k.shape[3] = 8; }, "k's axis 3 is 8 long");
  refused([](Call &c) { c.params.v.dtype = ASSAY_E4M3; }, "v is e4m3", ASSAY_UNSUPPORTED);
  refused([](Call &c) { c.params.v.stride[3] = 2; }, "v's last axis has stride 2",
          ASSAY_UNSUPPORTED);
  refused([](Call &c) { c.params.k.stride[0] = int64_t{1} << 57; }, "k reaches beyond 2^58");
  refused([](Call &c) { c.params.k.stride[1] = -16; }, "k has stride -16");
  refused([](Call &c) { c.table[0] = kPages; }, "page_table names page 12 for request 0");
  refused([](Call &c) { c.table[1] = -1; }, "page_table names page -1");
  refused([](Call &c) { c.lengths[1] = kColumns * kPage + 1; },
          "seq_lens[1] is 33, its page table holds at most 32");
  refused([](Call &c) { c.lengths[2] = -1; }, "seq_lens[2] is -1");
  refused([](Call &c) { c.indptr = {0, 3, 2, 4, 6}; }, "qo_indptr[2] is smaller");
  refused([](Call &c) { c.indptr[4] = 7; }, "qo_indptr goes from 0 to 7");
  refused([](Call &c) { c.params.qo_indptr = {}; },
          "q has 6 rows, expected a multiple of the 4 requests");
  refused([](Call &c) { c.params.lse.shape[1] = 5; }, "lse's axis 1 is 5 long");
  refused([](Call &c) { c.params.sm_scale = NAN; }, "sm_scale");
  refused([](Call &c) { c.params.logits_soft_cap = -1; }, "logits_soft_cap");
  refused([](Call &c) { c.params.window_left = -2; }, "window_left is -2");
  refused([](Call &c) { c.params.lse_base = 7; }, "lse_base is 7");
  refused([](Call &c) { c.params.k_scale = array(c.lse.data(), ASSAY_FP32, {1}); },
          "k_scale is given and k is not fp8");
  refused([](Call &c) { c.params.alibi_slopes = array(c.lse.data(), ASSAY_FP32, {5}); },
          "alibi_slopes's axis 0 is 5 long");
  refused([](Call &c) { c.params.arithmetic.rcp_rel_error = 2; }, "rcp_rel_error is 2");
  refused([](Call &c) { c.params.struct_size = 4; }, "struct_size is 4");
  refused([](Call &c) { c.params.struct_size += 4; }, "struct_size is ");
  refused([](Call &c) { c.params.page_indptr = array(c.lengths.data(), ASSAY_INT32, {5}); },
          "page_table has 2 dimensions");
}

TEST(JudgeApi, MergesOfStatesAreJudged) {
  const int rows = 2, heads = 3, states = 3, dim = 8;
  std::vector<float> o(states * rows * heads * dim), lse(states * rows * heads),
      out(rows * heads * dim), out_lse(rows * heads);
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  for (auto *values : {&o, &lse})
    for (float &x : *values)
      x = normal(random);
  for (int row = 0; row < rows * heads; ++row) {
    double sum = 0;
    for (int s = 0; s < states; ++s)
      sum += std::exp(double{lse[s * rows * heads + row]});
    for (int i = 0; i < dim; ++i) {
      double x = 0;
      for (int s = 0; s < states; ++s)
        x += std::exp(double{lse[s * rows * heads + row]}) / sum *
             o[(s * rows * heads + row) * dim + i];
      out[row * dim + i] = static_cast<float>(x);
    }
    out_lse[row] = static_cast<float>(std::log(sum));
  }
  assay_judge_merge_params p{};
  p.struct_size = sizeof p;
  p.out = array(out.data(), ASSAY_FP32, {rows, heads, dim});
  p.lse = array(out_lse.data(), ASSAY_FP32, {rows, heads});
  p.o_in = array(o.data(), ASSAY_FP32, {states, rows, heads, dim});
  p.lse_in = array(lse.data(), ASSAY_FP32, {states, rows, heads});
  p.arithmetic.exp2_rel_error = p.arithmetic.log2_abs_error = p.arithmetic.rcp_rel_error = 0x1p-22;
  assay_judge_report report{};
  report.struct_size = sizeof report;
  ASSERT_EQ(assay_judge_merge(&p, &report), ASSAY_OK) << assay_judge_last_error();
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_INSIDE) << report.worst.reason;
  EXPECT_EQ(report.claimed, uint64_t(rows * heads * (dim + 1)));
  p.lse_base = ASSAY_LSE_BASE_2; // the states were merged in the other base
  ASSERT_EQ(assay_judge_merge(&p, &report), ASSAY_OK);
  EXPECT_EQ(report.verdict, ASSAY_JUDGE_OUTSIDE);
  p.lse_in.shape[0] = 2;
  EXPECT_EQ(assay_judge_merge(&p, &report), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(assay_judge_last_error()).find("lse_in"), std::string::npos);
}

} // namespace
} // namespace assay::oracle::test
