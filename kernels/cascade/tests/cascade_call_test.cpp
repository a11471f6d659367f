// SPDX-License-Identifier: Apache-2.0
// Every bad argument is refused with a typed status and a message that names it, before any launch.
#include "kernels/decode/tests/paged_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace assay {
namespace {

/// One level over the cache of a small paged call.
struct CascadeCase {
  PagedCase c;
  assay_cascade_level level = {c.p.kv, c.table, {}};
  assay_cascade_params p = {};
  CascadeCase() {
    p.struct_size = sizeof p;
    p.dtype = ASSAY_BF16;
    p.batch = 1;
    p.num_qo_heads = 4;
    p.num_kv_heads = 1;
    p.head_dim = 64;
    p.sm_scale = 0.125f;
    p.num_levels = 1;
    p.levels = &level;
    p.q = c.q;
    p.out = c.o;
    p.q_stride_batch = p.out_stride_batch = 256;
    p.q_stride_head = p.out_stride_head = 64;
    p.workspace = c.workspace;
    p.workspace_bytes = sizeof c.workspace;
  }
};

TEST(CascadeCall, cascade_names_the_level) {
  CascadeCase cascade;
  auto &[c, level, p] = cascade;
  EXPECT_EQ(assay_cascade_attention_supports(&p), ASSAY_OK) << assay_last_error();
  struct {
    const char *names;
    std::function<void(assay_cascade_params &)> spoil;
  } cases[] = {
      {"sm_scale", [](auto &q) { q.sm_scale = INFINITY; }},
      {"num_splits", [](auto &q) { q.num_splits = (1 << 12) + 1; }},
      {"q_stride_head", [](auto &q) { q.q_stride_head = 12; }},
      {"out_stride_head", [](auto &q) { q.out_stride_head = 0; }},
  };
  for (const auto &bad : cases) {
    assay_cascade_params q = p;
    bad.spoil(q);
    EXPECT_EQ(assay_cascade_attention(&q), ASSAY_INVALID_ARGUMENT) << bad.names;
    EXPECT_NE(std::string(assay_last_error()).find(bad.names), std::string::npos)
        << assay_last_error();
  }
  level.kv.page_size = -2;
  EXPECT_EQ(assay_cascade_attention(&p), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(assay_last_error()).find("levels[0].kv.page_size"), std::string::npos);
  p.num_levels = ASSAY_MAX_CASCADE_LEVELS + 1;
  EXPECT_EQ(assay_cascade_attention(&p), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(assay_last_error()).find("num_levels"), std::string::npos);
}

// Blocks of 64 rows: a level of s segments has s + floor((batch * group - s) / 64) slots for them.
TEST(CascadeCall, as_many_blocks_as_a_grid_holds_and_no_more) {
  CascadeCase cascade;
  auto &[c, level, p] = cascade;
  p.workspace_bytes = std::numeric_limits<uint64_t>::max();
  p.batch = (1 << 17) - 1;
  p.num_qo_heads = 1 << 20;
  p.num_kv_heads = p.num_splits = 1;
  level.kv.rows = 16644;
  EXPECT_EQ(assay_cascade_attention_supports(&p), ASSAY_OK) << assay_last_error();
  ++level.kv.rows;
  EXPECT_EQ(assay_cascade_attention_supports(&p), ASSAY_CAPACITY_EXCEEDED);
  p.num_qo_heads = p.num_kv_heads = 2; // slots count for each kv head and split
  p.num_splits = 1 << 12;
  level.kv.rows = 1;
  p.batch = (1 << 24) - 64;
  EXPECT_EQ(assay_cascade_attention_supports(&p), ASSAY_OK) << assay_last_error();
  p.batch = 1 << 24;
  EXPECT_EQ(assay_cascade_attention_supports(&p), ASSAY_CAPACITY_EXCEEDED);
}

} // namespace
} // namespace assay
