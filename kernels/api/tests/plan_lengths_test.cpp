// SPDX-License-Identifier: Apache-2.0
// assay_tree_attention_plan_lengths: where only lengths have grown it writes what a whole plan
// would be, and looks at no page.
#include "kernels/abi/plugin.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace assay {
namespace {

constexpr int kBatch = 3, kHeads = 2, kDim = 64, kPage = 16, kColumns = 20, kShared = 12;

/// Requests that share 192 keys. Behind them each has pages of its own.
struct SharedCase {
  std::vector<uint16_t> q, k, v, out;
  std::array<int32_t, kBatch * kColumns> table;
  std::array<int32_t, kBatch> lens = {200, 193, 250};
  std::vector<std::array<char, 16>> workspace, plan;
  assay_paged_params p = assay_paged_params_init();

  SharedCase() {
    std::mt19937 rng(1);
    const auto fill = [&](std::vector<uint16_t> &to, size_t size) {
      to.resize(size);
      for (uint16_t &x : to) // bf16 of magnitudes 1/2 to 2
        x = static_cast<uint16_t>(rng() % 2 << 15 | 0x3f00 | rng() % 0x100);
    };
    const size_t pool = kBatch * kColumns * size_t{kPage} * kHeads * kDim;
    fill(k, pool);
    fill(v, pool);
    fill(q, kBatch * 2 * kHeads * kDim);
    out.resize(q.size());
    for (int r = 0; r < kBatch; ++r)
      for (int i = 0; i < kColumns; ++i)
        table[r * kColumns + i] = i < kShared ? i : r * kColumns + i;
    p.dtype = p.kv_dtype = ASSAY_BF16;
    p.batch = p.kv.rows = kBatch;
    p.q_len = 1;
    p.num_qo_heads = 2 * kHeads;
    p.num_kv_heads = kHeads;
    p.head_dim = kDim;
    p.sm_scale = 0.125f;
    p.num_splits = 1; // whatever can be shared is
    p.q = q.data();
    p.out = out.data();
    p.q_stride_head = p.out_stride_head = kDim;
    p.q_stride_batch = p.out_stride_batch = 2 * kHeads * kDim;
    p.kv.k = k.data();
    p.kv.v = v.data();
    p.kv.k_stride_head = p.kv.v_stride_head = kDim;
    p.kv.k_stride_token = p.kv.v_stride_token = kHeads * kDim;
    p.kv.k_stride_page = p.kv.v_stride_page = kPage * kHeads * kDim;
    p.kv.page_table = table.data();
    p.kv.page_table_stride = p.kv.max_pages = kColumns;
    p.kv.page_size = kPage;
    p.kv.seq_lens = lens.data();
    EXPECT_EQ(assay_tree_attention_workspace_size(&p, &p.workspace_bytes), ASSAY_OK);
    EXPECT_EQ(assay_tree_attention_plan_size(&p, &p.plan_bytes), ASSAY_OK);
    workspace.resize(p.workspace_bytes / 16 + 1);
    plan.resize(p.plan_bytes / 16 + 1);
    p.workspace = workspace.data();
    p.plan = plan.data();
  }

  void plan_by(assay_status (*planner)(const assay_paged_params *)) {
    ASSERT_EQ(planner(&p), ASSAY_OK) << assay_last_error();
  }
  std::vector<uint16_t> run() {
    EXPECT_EQ(assay_tree_attention(&p), ASSAY_OK) << assay_last_error();
    return out;
  }
  /// Plans for longer requests without a page table.
  void grow(std::array<int32_t, kBatch> to) {
    lens = to;
    p.kv.page_table = nullptr;
    plan_by(&assay_tree_attention_plan_lengths);
    p.kv.page_table = table.data();
  }
};

TEST(PlanLengths, equals_a_whole_plan_where_lengths_have_grown) {
  SharedCase kept;
  kept.plan_by(&assay_tree_attention_plan);
  for (const std::array<int32_t, kBatch> lens : {std::array{201, 194, 251}, {320, 208, 252}}) {
    kept.grow(lens);
    SharedCase anew;
    anew.lens = lens;
    anew.plan_by(&assay_tree_attention_plan);
    EXPECT_EQ(kept.plan, anew.plan);
    EXPECT_EQ(kept.run(), anew.run());
  }
}

TEST(PlanLengths, leaves_pages_that_have_filled_up_to_their_requests) {
  SharedCase c;
  for (int r = 0; r < kBatch; ++r) // four more pages of all, of which two requests have none yet
    for (int i = kShared; i < 16; ++i)
      c.table[r * kColumns + i] = i;
  c.plan_by(&assay_tree_attention_plan);
  const auto planned = c.plan;
  c.grow({300, 290, 280});
  const auto kept = c.run();
  EXPECT_NE(c.plan, planned); // other keys of their own
  c.plan_by(&assay_tree_attention_plan);
  EXPECT_NE(c.run(), kept); // 256 keys in the node, and other roundings
  c.lens = {200, 193, 250};
  c.plan_by(&assay_tree_attention_plan);
  EXPECT_EQ(c.plan, planned);
}

TEST(PlanLengths, plans_a_batch_without_a_tree_as_version_2) {
  SharedCase c;
  c.p.window_left = 40;
  c.plan_by(&assay_tree_attention_plan);
  const auto planned = c.plan;
  c.grow({201, 230, 260});
  EXPECT_NE(c.plan, planned);
  const auto kept = c.plan;
  c.plan_by(&assay_tree_attention_plan);
  EXPECT_EQ(c.plan, kept);
}

} // namespace
} // namespace assay
