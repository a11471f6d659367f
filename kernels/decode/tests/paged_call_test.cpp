// SPDX-License-Identifier: Apache-2.0
// Every bad argument is refused with a typed status and a message that names it, before any launch.
#include "kernels/decode/tests/paged_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace assay {
namespace {

struct BadPaged {
  const char *names; // must appear in the message
  assay_status status;
  std::function<void(assay_paged_params &)> spoil;
};

const std::vector<BadPaged> &bad_paged() {
  using P = assay_paged_params;
  alignas(16) static char misaligned[64];
  static const int32_t zeros[4] = {};
  static const std::vector<BadPaged> kCases = {
      {"struct_size", ASSAY_INVALID_ARGUMENT, [](P &p) { p.struct_size = 8; }},
      {"target", ASSAY_INVALID_ARGUMENT, [](P &p) { p.target = 7; }},
      {"dtype", ASSAY_UNSUPPORTED, [](P &p) { p.dtype = ASSAY_FP32; }},
      {"lse_base", ASSAY_INVALID_ARGUMENT, [](P &p) { p.lse_base = 2; }},
      {"batch", ASSAY_INVALID_ARGUMENT, [](P &p) { p.batch = -1; }},
      {"kv.rows", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.rows = 2; }},
      {"num_qo_heads", ASSAY_INVALID_ARGUMENT, [](P &p) { p.num_qo_heads = 0; }},
      {"num_kv_heads", ASSAY_INVALID_ARGUMENT, [](P &p) { p.num_kv_heads = -3; }},
      {"multiple of num_kv_heads", ASSAY_INVALID_ARGUMENT, [](P &p) { p.num_kv_heads = 3; }},
      {"head_dim", ASSAY_UNSUPPORTED, [](P &p) { p.head_dim = 96; }},
      {"sm_scale", ASSAY_INVALID_ARGUMENT, [](P &p) { p.sm_scale = NAN; }},
      {"sm_scale", ASSAY_INVALID_ARGUMENT, [](P &p) { p.sm_scale = 0.0f; }},
      {"q is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q = nullptr; }},
      {"out is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.out = nullptr; }},
      {"kv.k is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.k = nullptr; }},
      {"kv.v is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.v = nullptr; }},
      {"kv.page_table is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.page_table = nullptr; }},
      {"kv.seq_lens is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.seq_lens = nullptr; }},
      {"q is not aligned", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q = misaligned + 2; }},
      {"lse is not aligned", ASSAY_INVALID_ARGUMENT,
       [](P &p) { p.lse = reinterpret_cast<float *>(misaligned + 1); }},
      {"out is not aligned", ASSAY_INVALID_ARGUMENT, [](P &p) { p.out = misaligned + 8; }},
      {"kv.v is not aligned", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.v = misaligned + 8; }},
      {"batch", ASSAY_INVALID_ARGUMENT, [](P &p) { p.batch = (1 << 24) + 1; }},
      {"num_qo_heads", ASSAY_INVALID_ARGUMENT, [](P &p) { p.num_qo_heads = (1 << 20) + 1; }},
      {"window_left", ASSAY_INVALID_ARGUMENT, [](P &p) { p.window_left = 1 << 30; }},
      {"out aliases q", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q = p.out; }},
      {"out aliases kv.k", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.k = p.out; }},
      {"out aliases kv.v", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.v = p.out; }},
      {"out_stride_head", ASSAY_INVALID_ARGUMENT, [](P &p) { p.out_stride_head = 56; }},
      {"lse_stride_head", ASSAY_INVALID_ARGUMENT, [](P &p) { p.lse_stride_head = 0; }},
      {"out_stride_batch", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.batch = p.kv.rows = 2;
         p.kv.seq_lens = zeros;
         p.out_stride_batch = 0;
       }},
      {"out_stride_token", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q_len = 2; }},
      {"lse_stride_token", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.q_len = p.num_qo_heads = 2;
         p.out_stride_token = 128;
       }},
      {"qo_indptr is not aligned", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.qo_indptr = reinterpret_cast<const int32_t *>(misaligned + 1);
         p.out_stride_token = p.lse_stride_token = 64;
       }},
      {"out_stride_token", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.q_len = 2; // one request; tokens of a ragged call may be many
         p.qo_indptr = zeros;
       }},
      {"global_lens is null", ASSAY_INVALID_ARGUMENT,
       [](P &p) { p.dcp_world_size = p.dcp_interleave = 1; }},
      {"num_ranks is 0", ASSAY_INVALID_ARGUMENT, [](P &p) { p.global_lens = zeros; }},
      {"dcp_world_size is 1025", ASSAY_INVALID_ARGUMENT, [](P &p) { p.dcp_world_size = 1025; }},
      {"dcp_rank is 1", ASSAY_INVALID_ARGUMENT, [](P &p) { p.dcp_rank = 1; }},
      {"dcp_rank is 2, expected 0 to 1", ASSAY_INVALID_ARGUMENT,
       [](P &p) { p.dcp_rank = p.dcp_world_size = 2; }},
      {"dcp_interleave is 1", ASSAY_INVALID_ARGUMENT, [](P &p) { p.dcp_interleave = 1; }},
      {"dcp_interleave is 536870913, expected 1 to 536870912", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.dcp_world_size = 2;
         p.dcp_interleave = (1 << 29) + 1;
       }},
      {"reserved", ASSAY_INVALID_ARGUMENT, [](P &p) { p.reserved = 1; }},
      {"enable_pdl", ASSAY_INVALID_ARGUMENT, [](P &p) { p.enable_pdl = 2; }},
      {"even_lengths", ASSAY_INVALID_ARGUMENT, [](P &p) { p.even_lengths = 2; }},
      {"q_stride_head", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q_stride_head = 63; }},
      {"out_stride_batch", ASSAY_INVALID_ARGUMENT, [](P &p) { p.out_stride_batch = -64; }},
      {"kv.k_stride_page", ASSAY_INVALID_ARGUMENT,
       [](P &p) { p.kv.k_stride_page = int64_t{1} << 31; }},
      {"kv.v_stride_token", ASSAY_INVALID_ARGUMENT,
       [](P &p) { p.kv.v_stride_token = int64_t{1} << 31; }},
      {"kv.k_stride_token", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.k_stride_token = 4; }},
      {"kv.v_stride_page", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.v_stride_page = -8; }},
      {"kv.page_size", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.page_size = 0; }},
      {"kv.max_pages", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.max_pages = -1; }},
      {"tokens a row", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.kv.max_pages = 1 << 20;
         p.kv.page_size = 1 << 20;
       }},
      {"kv.page_table_stride", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.page_table_stride = 1; }},
      {"kv.reserved", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.reserved[8] = 1; }},
      {"blocks", ASSAY_CAPACITY_EXCEEDED,
       [](P &p) {
         p.batch = p.kv.rows = 1 << 24;
         p.num_qo_heads = p.num_kv_heads = 1 << 20;
       }},
  };
  return kCases;
}

TEST(PagedCall, paged_v1_and_v2_name_every_bad_argument) {
  for (const BadPaged &bad : bad_paged()) {
    PagedCase c;
    bad.spoil(c.p);
    for (const auto run : {&assay_paged_attention_v1, &assay_paged_attention_v2}) {
      EXPECT_EQ(run(&c.p), bad.status) << bad.names << ": " << assay_last_error();
      EXPECT_NE(std::string(assay_last_error()).find(bad.names), std::string::npos)
          << "'" << assay_last_error() << "' does not name " << bad.names;
    }
  }
  EXPECT_EQ(assay_paged_attention_v1(nullptr), ASSAY_INVALID_ARGUMENT);
}

TEST(PagedCall, a_ragged_call_has_no_batch_strides) {
  PagedCase c;
  const int32_t starts[] = {0, 1};
  c.p.qo_indptr = starts;
  c.p.q_stride_batch = c.p.out_stride_batch = c.p.lse_stride_batch = -3;
  for (const auto run : {&assay_paged_attention_v1, &assay_paged_attention_v2})
    EXPECT_EQ(run(&c.p), ASSAY_OK) << assay_last_error();
}

TEST(PagedCall, as_many_blocks_as_a_grid_holds_and_no_more) {
  PagedCase c;
  c.p.batch = c.p.kv.rows = 1 << 24;
  c.p.num_splits = 0;
  for (const int32_t heads : {127, 128}) { // a block for each request and head
    c.p.num_qo_heads = c.p.num_kv_heads = heads;
    const assay_status expected = heads == 127 ? ASSAY_OK : ASSAY_CAPACITY_EXCEEDED;
    uint64_t bytes = 0;
    EXPECT_EQ(assay_paged_attention_v1_supports(&c.p), expected) << assay_last_error();
    EXPECT_EQ(assay_paged_attention_v2_plan_size(&c.p, &bytes), expected) << assay_last_error();
  }
}

TEST(PagedCall, paged_inputs_may_have_stride_0_and_no_pages_at_all) {
  PagedCase c;
  c.p.q_stride_batch = c.p.q_stride_head = c.p.kv.k_stride_page = c.p.kv.v_stride_token = 0;
  c.p.out_stride_batch = c.p.lse_stride_batch = 0; // there is one request, so it is never used
  for (const auto run : {&assay_paged_attention_v1, &assay_paged_attention_v2})
    EXPECT_EQ(run(&c.p), ASSAY_OK) << assay_last_error();
  c.lens[0] = c.p.kv.max_pages = 0;
  c.p.kv.k = c.p.kv.v = c.p.kv.page_table = nullptr;
  for (const auto run : {&assay_paged_attention_v1, &assay_paged_attention_v2}) {
    c.lse[0] = 0.0f;
    EXPECT_EQ(run(&c.p), ASSAY_OK) << assay_last_error();
    EXPECT_EQ(c.lse[0], -INFINITY);
  }
}

TEST(PagedCall, v2_names_workspace_plan_and_splits) {
  PagedCase c;
  uint64_t bytes = 0;
  ASSERT_EQ(assay_paged_attention_v2_workspace_size(&c.p, &bytes), ASSAY_OK);
  c.p.workspace_bytes = bytes - 1;
  EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_WORKSPACE_TOO_SMALL);
  EXPECT_NE(std::string(assay_last_error()).find(std::to_string(bytes)), std::string::npos);
  c.p.workspace_bytes = bytes;
  c.p.workspace = nullptr;
  EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_INVALID_ARGUMENT);
  c.p.workspace = c.workspace;
  EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_OK) << assay_last_error();
  for (int32_t splits : {-1, (1 << 16) + 1}) {
    c.p.num_splits = splits;
    EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_INVALID_ARGUMENT);
    EXPECT_NE(std::string(assay_last_error()).find("num_splits"), std::string::npos);
    EXPECT_EQ(assay_paged_attention_v1(&c.p), ASSAY_OK) << assay_last_error(); // ignores it
  }
  c.p.num_splits = 0;
  c.p.workspace_bytes = sizeof c.workspace;
  EXPECT_EQ(assay_paged_attention_v2_workspace_size(&c.p, nullptr), ASSAY_INVALID_ARGUMENT);
}

TEST(PagedCall, a_plan_that_is_too_small_is_named_with_the_bytes_it_needs) {
  PagedCase c;
  alignas(16) static char memory[1 << 14];
  c.p.plan = memory;
  uint64_t bytes = 0;
  ASSERT_EQ(assay_paged_attention_v2_plan_size(&c.p, &bytes), ASSAY_OK) << assay_last_error();
  ASSERT_LE(bytes, sizeof memory);
  const auto names_bytes = [&] {
    const std::string message = assay_last_error();
    return message.find("plan_bytes") != std::string::npos &&
           message.find(std::to_string(bytes)) != std::string::npos;
  };
  c.p.plan_bytes = bytes - 1;
  EXPECT_EQ(assay_paged_attention_v2_plan(&c.p), ASSAY_WORKSPACE_TOO_SMALL);
  EXPECT_TRUE(names_bytes()) << assay_last_error();
  EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_WORKSPACE_TOO_SMALL);
  EXPECT_TRUE(names_bytes()) << assay_last_error();
  c.p.plan_bytes = bytes;
  EXPECT_EQ(assay_paged_attention_v2_plan(&c.p), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_OK) << assay_last_error();
}

// One plan serves all layers, whose pools and queries it has not seen.
TEST(PagedCall, a_plan_needs_lengths_and_room_and_nothing_else_that_is_pointed_to) {
  PagedCase c;
  alignas(16) static char memory[1 << 14];
  assay_paged_params plan = c.p;
  plan.q = plan.out = plan.workspace = nullptr;
  plan.lse = nullptr;
  plan.kv.k = plan.kv.v = plan.kv.page_table = nullptr;
  plan.q_stride_batch = plan.kv.k_stride_page = plan.kv.page_table_stride = 0;
  plan.plan = memory;
  plan.plan_bytes = sizeof memory;
  EXPECT_EQ(assay_paged_attention_v2_plan(&plan), ASSAY_OK) << assay_last_error();
  struct {
    const char *names;
    assay_status status;
    std::function<void(assay_paged_params &)> spoil;
  } cases[] = {
      {"struct_size", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.struct_size = 80; }},
      {"q_len", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.q_len = 9; }},
      {"kv_dtype", ASSAY_UNSUPPORTED, [](auto &p) { p.kv_dtype = ASSAY_FP32; }},
      {"num_splits", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.num_splits = -1; }},
      {"kv.max_pages", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.kv.max_pages = -1; }},
      {"kv.page_size", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.kv.page_size = 0; }},
      {"tokens a row", ASSAY_INVALID_ARGUMENT,
       [](auto &p) { p.kv.max_pages = p.kv.page_size = 1 << 16; }}, // 2^32: 0 in 32 bits
      {"kv.rows", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.kv.rows = 2; }},
      {"kv.seq_lens is null", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.kv.seq_lens = nullptr; }},
      {"plan is null", ASSAY_INVALID_ARGUMENT, [](auto &p) { p.plan = nullptr; }},
      {"plan is not aligned", ASSAY_INVALID_ARGUMENT, [&](auto &p) { p.plan = memory + 8; }},
  };
  for (const auto &bad : cases) {
    assay_paged_params p = plan;
    bad.spoil(p);
    EXPECT_EQ(assay_paged_attention_v2_plan(&p), bad.status) << bad.names;
    EXPECT_NE(std::string(assay_last_error()).find(bad.names), std::string::npos)
        << "'" << assay_last_error() << "' does not name " << bad.names;
  }
}

// What the call refuses, its sizes and its choice refuse, too.
TEST(PagedCall, other_head_dims_are_refused_by_every_entry) {
  for (const int32_t head_dim : {0, 32, 80, 96, 160, 192, 320, 512}) {
    PagedCase c;
    c.p.head_dim = head_dim;
    uint64_t bytes = 7;
    assay_paged_choice choice = {};
    EXPECT_EQ(assay_paged_attention_v1_supports(&c.p), ASSAY_UNSUPPORTED) << head_dim;
    EXPECT_EQ(assay_paged_attention_v2_supports(&c.p), ASSAY_UNSUPPORTED) << head_dim;
    EXPECT_EQ(assay_tree_attention_supports(&c.p), ASSAY_UNSUPPORTED) << head_dim;
    for (const auto size :
         {assay_paged_attention_v2_workspace_size, assay_paged_attention_v2_plan_size,
          assay_tree_attention_workspace_size, assay_tree_attention_plan_size})
      EXPECT_EQ(size(&c.p, &bytes), ASSAY_UNSUPPORTED) << head_dim;
    EXPECT_EQ(assay_paged_attention_choose(&c.p, 1, 1, &choice), ASSAY_UNSUPPORTED) << head_dim;
    EXPECT_EQ(assay_paged_attention_v2_plan(&c.p), ASSAY_UNSUPPORTED) << head_dim;
    EXPECT_EQ(bytes, 7u) << head_dim;
  }
}

TEST(PagedCall, choose_follows_lengths_and_names_bad_arguments) {
  PagedCase c;
  c.p.num_splits = 0;
  c.p.batch = c.p.kv.rows = 256;
  c.p.num_kv_heads = 8;
  c.p.num_qo_heads = 32;
  c.p.head_dim = 128;
  assay_paged_choice choice = {};
  const auto choose = [&](int64_t total, int32_t longest) {
    return assay_paged_attention_choose(&c.p, total, longest, &choice);
  };
  ASSERT_EQ(choose(256 * 1024, 1024), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(choice.version, 1); // uniform, in whole waves
  EXPECT_EQ(choice.even_lengths, 1);
  ASSERT_EQ(choose(256 * 1024, 65536), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(choice.version, 2); // one long row
  EXPECT_EQ(choice.even_lengths, 0);
  c.p.batch = c.p.kv.rows = 1;
  ASSERT_EQ(choose(8192, 8192), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(choice.version, 2); // too few rows
  EXPECT_EQ(choose(8193, 8192), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(assay_last_error()).find("total_tokens"), std::string::npos);
  EXPECT_EQ(assay_paged_attention_choose(&c.p, 1, 1, nullptr), ASSAY_INVALID_ARGUMENT);
}

// No kernel runs here, and no memory holds such a cache: the answer is arithmetic alone.
TEST(PagedCall, choose_answers_for_the_largest_calls) {
  PagedCase c;
  c.p.num_splits = 0;
  c.p.head_dim = 256;
  assay_paged_choice choice = {};
  for (const int32_t kv_heads : {1, 128, 1 << 12})
    for (const int32_t longest : {1 << 20, 1 << 30}) {
      c.p.num_kv_heads = c.p.num_qo_heads = kv_heads;
      c.p.batch = c.p.kv.rows = (1 << 24) / kv_heads;
      const int64_t all = int64_t{c.p.batch} * longest;
      ASSERT_EQ(assay_paged_attention_choose(&c.p, all, longest, &choice), ASSAY_OK)
          << assay_last_error();
      EXPECT_EQ(choice.version, 1) << kv_heads << " " << longest; // uniform: nothing to balance
      EXPECT_EQ(choice.even_lengths, 1);
      ASSERT_EQ(assay_paged_attention_choose(&c.p, all / 8, longest, &choice), ASSAY_OK);
      EXPECT_EQ(choice.even_lengths, 0);
    }
}

} // namespace
} // namespace assay
