// SPDX-License-Identifier: Apache-2.0
// Every bad argument is refused with a typed status and a message that names it, before any launch.
#include "kernels/abi/assay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace assay {
namespace {

TEST(MergeCall, merge_names_bad_arguments_and_refuses_a_shifted_alias) {
  alignas(16) float a[64] = {}, b[64] = {}, o[64];
  float lse_a[2] = {}, lse_b[2] = {}, lse[2];
  assay_merge_state_params p = {};
  p.struct_size = sizeof p;
  p.dtype = ASSAY_FP32;
  p.num_rows = 2;
  p.num_heads = 1;
  p.head_dim = 16;
  p.o_a = a;
  p.o_b = b;
  p.out = o;
  p.lse_a = lse_a;
  p.lse_b = lse_b;
  p.lse = lse;
  p.o_a_stride_row = p.o_b_stride_row = p.out_stride_row = 16;
  p.lse_a_stride_row = p.lse_b_stride_row = p.lse_stride_row = 1;
  EXPECT_EQ(assay_merge_state(&p), ASSAY_OK) << assay_last_error();
  struct {
    const char *names;
    assay_status status;
    std::function<void(assay_merge_state_params &)> spoil;
  } cases[] = {
      {"head_dim", ASSAY_UNSUPPORTED, [](auto &q) { q.head_dim = 12; }},
      {"head_dim", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.head_dim = 520; }},
      {"num_rows", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.num_rows = -1; }},
      {"num_heads", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.num_heads = 0; }},
      {"o_a is null", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_a = nullptr; }},
      {"lse_b is null", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.lse_b = nullptr; }},
      {"num_heads", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.num_heads = (1 << 20) + 1; }},
      {"out_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.out_stride_row = 9; }},
      {"out_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.out_stride_row = 0; }},
      {"out_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.out_stride_row = 8; }},
      {"lse_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.lse_stride_row = 0; }},
      {"o_a_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_a_stride_row = 12; }},
      {"o_b_stride_head", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_b_stride_head = -8; }},
      {"lse_a_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.lse_a_stride_row = -1; }},
      {"lse_b_stride_head", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.lse_b_stride_head = -1; }},
      {"o_b is not aligned", ASSAY_INVALID_ARGUMENT, [&](auto &q) { q.o_b = b + 2; }},
      {"dtype", ASSAY_UNSUPPORTED, [](auto &q) { q.dtype = 9; }},
      {"out aliases o_a", ASSAY_INVALID_ARGUMENT,
       [&](auto &q) {
         q.out = a;
         q.out_stride_row = 24;
       }},
      {"lse aliases lse_b", ASSAY_INVALID_ARGUMENT,
       [&](auto &q) {
         q.lse = lse_b;
         q.lse_b_stride_row = 0;
       }},
  };
  assay_merge_state_params lse_only = p; // in place, next to an o of its own with its own strides
  lse_only.lse = lse_a;
  lse_only.out_stride_row = 24;
  alignas(16) float wide[40];
  lse_only.out = wide;
  EXPECT_EQ(assay_merge_state(&lse_only), ASSAY_OK) << assay_last_error();
  for (float merged : lse_a)
    EXPECT_NEAR(merged, 0.6931472f, 1e-5f); // ln 2: two states of 0
  for (const auto &bad : cases) {
    assay_merge_state_params q = p;
    bad.spoil(q);
    EXPECT_EQ(assay_merge_state(&q), bad.status) << bad.names;
    EXPECT_NE(std::string(assay_last_error()).find(bad.names), std::string::npos)
        << assay_last_error();
  }
}

TEST(MergeCall, merge_states_names_bad_arguments_and_is_not_done_in_place) {
  alignas(16) float in[64] = {}, o[32];
  float lse_in[4] = {}, lse[2];
  assay_merge_states_params p = {};
  p.struct_size = sizeof p;
  p.dtype = ASSAY_FP32;
  p.num_rows = p.num_states = 2;
  p.num_heads = 1;
  p.head_dim = 16;
  p.o_in = in;
  p.lse_in = lse_in;
  p.out = o;
  p.lse = lse;
  p.o_in_stride_state = p.out_stride_row = 16;
  p.lse_in_stride_state = p.lse_stride_row = 1;
  EXPECT_EQ(assay_merge_states(&p), ASSAY_OK) << assay_last_error();
  struct {
    const char *names;
    std::function<void(assay_merge_states_params &)> spoil;
  } cases[] = {
      {"num_states", [](auto &q) { q.num_states = (1 << 24) + 1; }},
      {"o_in_stride_state", [](auto &q) { q.o_in_stride_state = 12; }},
      {"lse_in_stride_state", [](auto &q) { q.lse_in_stride_state = -1; }},
      {"o_in_stride_head", [](auto &q) { q.o_in_stride_head = 4; }},
      {"out_stride_row", [](auto &q) { q.out_stride_row = 8; }},
      {"lse_stride_row", [](auto &q) { q.lse_stride_row = 0; }},
      {"out aliases o_in", [&](auto &q) { q.out = in; }},
      {"lse aliases lse_in", [&](auto &q) { q.lse = lse_in; }},
  };
  for (const auto &bad : cases) {
    assay_merge_states_params q = p;
    bad.spoil(q);
    EXPECT_EQ(assay_merge_states(&q), ASSAY_INVALID_ARGUMENT) << bad.names;
    EXPECT_NE(std::string(assay_last_error()).find(bad.names), std::string::npos)
        << assay_last_error();
  }
  p.num_states = 0;
  p.o_in = p.lse_in = nullptr;
  EXPECT_EQ(assay_merge_states(&p), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(lse[1], -INFINITY);
}

// A row of one head of 512 components is one block.
TEST(MergeCall, as_many_blocks_as_a_grid_holds_and_no_more) {
  alignas(16) float o[8] = {};
  float lse[1] = {};
  assay_merge_states_params p = {};
  p.struct_size = sizeof p;
  p.dtype = ASSAY_FP32;
  p.num_rows = std::numeric_limits<int32_t>::max();
  p.num_states = 1;
  p.num_heads = 1;
  p.head_dim = 512;
  p.o_in = o;
  p.lse_in = lse;
  p.out = o + 4;
  p.out_stride_row = p.out_stride_head = 512;
  EXPECT_EQ(assay_merge_states_supports(&p), ASSAY_OK) << assay_last_error();
  p.num_heads = 2;
  EXPECT_EQ(assay_merge_states_supports(&p), ASSAY_CAPACITY_EXCEEDED) << assay_last_error();
}

/// Elements of a [rows, heads, width] tensor from its own strides to others.
std::vector<float> laid_out(const std::vector<float> &dense, int rows, int heads, int width,
                            int64_t row_stride, int64_t head_stride) {
  std::vector<float> out((rows - 1) * row_stride + (heads - 1) * head_stride + width, NAN);
  for (int i = 0; i < rows * heads * width; ++i)
    out[i / width / heads * row_stride + i / width % heads * head_stride + i % width] = dense[i];
  return out;
}

// Dense, rows or heads or both padded, heads in front of rows, and as far apart as there are heads.
TEST(MergeCall, where_rows_and_heads_lie_changes_no_bit) {
  constexpr int kRows = 3, kHeads = 8, kDim = 8;
  struct Strides {
    int64_t row, head;
  };
  constexpr Strides kWide[] = {{64, 8}, {72, 8}, {128, 8}, {128, 16}, {136, 16}, {8, 24}};
  constexpr Strides kNarrow[] = {{8, 1}, {9, 1}, {16, 2}, {17, 2}, {64, 8}, {72, 8}, {1, 3}};
  std::mt19937 rng(5);
  const auto draw = [&](int count) {
    std::vector<float> out(count);
    for (float &x : out)
      x = static_cast<float>(rng() % 4096) / 512 - 4;
    return out;
  };
  const std::vector<float> o_a = draw(kRows * kHeads * kDim), o_b = draw(kRows * kHeads * kDim),
                           lse_a = draw(kRows * kHeads), lse_b = draw(kRows * kHeads),
                           nothing(o_a.size(), NAN);
  const auto merged = [&](Strides a, Strides b, Strides o, Strides la, Strides lb, Strides l) {
    const auto in_a = laid_out(o_a, kRows, kHeads, kDim, a.row, a.head),
               in_b = laid_out(o_b, kRows, kHeads, kDim, b.row, b.head),
               in_la = laid_out(lse_a, kRows, kHeads, 1, la.row, la.head),
               in_lb = laid_out(lse_b, kRows, kHeads, 1, lb.row, lb.head);
    auto out = laid_out(nothing, kRows, kHeads, kDim, o.row, o.head),
         lse = laid_out(nothing, kRows, kHeads, 1, l.row, l.head);
    assay_merge_state_params p = {};
    p.struct_size = sizeof p;
    p.dtype = ASSAY_FP32;
    p.num_rows = kRows;
    p.num_heads = kHeads;
    p.head_dim = kDim;
    p.o_a = in_a.data();
    p.o_b = in_b.data();
    p.lse_a = in_la.data();
    p.lse_b = in_lb.data();
    p.out = out.data();
    p.lse = lse.data();
    p.o_a_stride_row = a.row, p.o_a_stride_head = a.head;
    p.o_b_stride_row = b.row, p.o_b_stride_head = b.head;
    p.lse_a_stride_row = la.row, p.lse_a_stride_head = la.head;
    p.lse_b_stride_row = lb.row, p.lse_b_stride_head = lb.head;
    p.out_stride_row = o.row, p.out_stride_head = o.head;
    p.lse_stride_row = l.row, p.lse_stride_head = l.head;
    EXPECT_EQ(assay_merge_state(&p), ASSAY_OK) << assay_last_error();
    std::vector<float> found;
    for (int i = 0; i < kRows * kHeads; ++i) {
      found.push_back(lse[i / kHeads * l.row + i % kHeads * l.head]);
      for (int k = 0; k < kDim; ++k)
        found.push_back(out[i / kHeads * o.row + i % kHeads * o.head + k]);
    }
    return found;
  };
  const Strides wide = kWide[0], narrow = kNarrow[0];
  const std::vector<float> expected = merged(wide, wide, wide, narrow, narrow, narrow);
  for (const float x : expected)
    EXPECT_FALSE(std::isnan(x));
  for (const Strides &o : kWide)
    for (const Strides &lse : kNarrow) {
      EXPECT_EQ(merged(o, o, o, lse, lse, lse), expected) << o.row << " " << lse.row;
      EXPECT_EQ(merged(o, wide, wide, lse, narrow, narrow), expected) << o.row << " " << lse.row;
      EXPECT_EQ(merged(wide, o, wide, narrow, lse, narrow), expected) << o.row << " " << lse.row;
      EXPECT_EQ(merged(wide, wide, o, narrow, narrow, lse), expected) << o.row << " " << lse.row;
    }
}

} // namespace
} // namespace assay
