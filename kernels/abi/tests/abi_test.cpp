// SPDX-License-Identifier: Apache-2.0
// Every bad argument is refused with a typed status and a message that names it, before any launch.
#include "kernels/abi/plugin.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

extern "C" assay_status abi_c99_empty_batch(void);

namespace {

/// A small valid call; memory is real so that a missing check would run the kernel.
struct PagedCase {
  alignas(16) uint16_t q[4 * 64] = {}, o[4 * 64], k[2 * 16 * 64] = {}, v[2 * 16 * 64] = {};
  float lse[4];
  int32_t table[2] = {0, 1}, lens[1] = {20};
  alignas(16) char workspace[1 << 16];
  assay_paged_params p = {};
  PagedCase() {
    p.struct_size = sizeof p;
    p.dtype = p.kv_dtype = ASSAY_BF16;
    p.batch = p.q_len = 1;
    p.num_qo_heads = 4;
    p.num_kv_heads = 1;
    p.head_dim = 64;
    p.sm_scale = 0.125f;
    p.q = q;
    p.o = o;
    p.lse = lse;
    p.q_stride_batch = p.o_stride_batch = 256;
    p.q_stride_head = p.o_stride_head = 64;
    p.lse_stride_batch = 4;
    p.lse_stride_head = 1;
    p.kv.k = k;
    p.kv.v = v;
    p.kv.k_stride_page = p.kv.v_stride_page = 16 * 64;
    p.kv.k_stride_token = p.kv.v_stride_token = 64;
    p.kv.k_stride_head = p.kv.v_stride_head = 64;
    p.kv.page_table = table;
    p.kv.seq_lens = lens;
    p.kv.page_table_stride = 2;
    p.kv.rows = 1;
    p.kv.max_pages = 2;
    p.kv.page_size = 16;
    p.workspace = workspace;
    p.workspace_bytes = sizeof workspace;
    p.num_splits = 3;
  }
};

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
      {"o is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.o = nullptr; }},
      {"kv.k is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.k = nullptr; }},
      {"kv.v is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.v = nullptr; }},
      {"kv.page_table is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.page_table = nullptr; }},
      {"kv.seq_lens is null", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.seq_lens = nullptr; }},
      {"q is not aligned", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q = misaligned + 2; }},
      {"lse is not aligned", ASSAY_INVALID_ARGUMENT,
       [](P &p) { p.lse = reinterpret_cast<float *>(misaligned + 1); }},
      {"o is not aligned", ASSAY_INVALID_ARGUMENT, [](P &p) { p.o = misaligned + 8; }},
      {"kv.v is not aligned", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.v = misaligned + 8; }},
      {"batch", ASSAY_INVALID_ARGUMENT, [](P &p) { p.batch = (1 << 24) + 1; }},
      {"num_qo_heads", ASSAY_INVALID_ARGUMENT, [](P &p) { p.num_qo_heads = (1 << 20) + 1; }},
      {"window", ASSAY_INVALID_ARGUMENT, [](P &p) { p.window = (1 << 30) + 1; }},
      {"o aliases q", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q = p.o; }},
      {"o aliases kv.k", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.k = p.o; }},
      {"o aliases kv.v", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.v = p.o; }},
      {"o_stride_head", ASSAY_INVALID_ARGUMENT, [](P &p) { p.o_stride_head = 56; }},
      {"lse_stride_head", ASSAY_INVALID_ARGUMENT, [](P &p) { p.lse_stride_head = 0; }},
      {"o_stride_batch", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.batch = p.kv.rows = 2;
         p.kv.seq_lens = zeros;
         p.o_stride_batch = 0;
       }},
      {"o_stride_token", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q_len = 2; }},
      {"lse_stride_token", ASSAY_INVALID_ARGUMENT,
       [](P &p) {
         p.q_len = p.num_qo_heads = 2;
         p.o_stride_token = 128;
       }},
      {"early_start", ASSAY_INVALID_ARGUMENT, [](P &p) { p.early_start = 2; }},
      {"even_lengths", ASSAY_INVALID_ARGUMENT, [](P &p) { p.even_lengths = 2; }},
      {"q_stride_head", ASSAY_INVALID_ARGUMENT, [](P &p) { p.q_stride_head = 63; }},
      {"o_stride_batch", ASSAY_INVALID_ARGUMENT, [](P &p) { p.o_stride_batch = -64; }},
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
      {"kv.reserved", ASSAY_INVALID_ARGUMENT, [](P &p) { p.kv.reserved = 1; }},
      {"blocks", ASSAY_CAPACITY_EXCEEDED,
       [](P &p) {
         p.batch = p.kv.rows = 1 << 24;
         p.num_qo_heads = p.num_kv_heads = 1 << 20;
       }},
  };
  return kCases;
}

TEST(Abi, paged_v1_and_v2_name_every_bad_argument) {
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

TEST(Abi, paged_inputs_may_have_stride_0_and_no_pages_at_all) {
  PagedCase c;
  c.p.q_stride_batch = c.p.q_stride_head = c.p.kv.k_stride_page = c.p.kv.v_stride_token = 0;
  c.p.o_stride_batch = c.p.lse_stride_batch = 0; // of one request: never taken
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

TEST(Abi, v2_names_workspace_plan_and_splits) {
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

TEST(Abi, a_plan_that_is_too_small_is_named_with_the_bytes_it_needs) {
  PagedCase c;
  alignas(16) static char memory[1 << 14];
  assay_plan_params plan = {};
  plan.struct_size = sizeof plan;
  plan.dtype = plan.kv_dtype = c.p.dtype;
  plan.batch = plan.q_len = plan.num_kv_heads = 1;
  plan.num_qo_heads = 4;
  plan.head_dim = 64;
  plan.max_seq_len = 32;
  plan.num_splits = c.p.num_splits;
  plan.seq_lens = c.lens;
  plan.plan = c.p.plan = memory;
  uint64_t bytes = 0;
  ASSERT_EQ(assay_plan_size(&plan, &bytes), ASSAY_OK) << assay_last_error();
  ASSERT_LE(bytes, sizeof memory);
  const auto names_bytes = [&] {
    const std::string message = assay_last_error();
    return message.find("plan_bytes") != std::string::npos &&
           message.find(std::to_string(bytes)) != std::string::npos;
  };
  plan.plan_bytes = c.p.plan_bytes = bytes - 1;
  EXPECT_EQ(assay_plan(&plan), ASSAY_WORKSPACE_TOO_SMALL);
  EXPECT_TRUE(names_bytes()) << assay_last_error();
  EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_WORKSPACE_TOO_SMALL);
  EXPECT_TRUE(names_bytes()) << assay_last_error();
  plan.plan_bytes = c.p.plan_bytes = bytes;
  EXPECT_EQ(assay_plan(&plan), ASSAY_OK) << assay_last_error();
  EXPECT_EQ(assay_paged_attention_v2(&c.p), ASSAY_OK) << assay_last_error();
}

TEST(Abi, choose_follows_lengths_and_names_bad_arguments) {
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

TEST(Abi, an_empty_batch_is_a_success_that_launches_nothing) {
  EXPECT_EQ(abi_c99_empty_batch(), ASSAY_OK) << assay_last_error();
  EXPECT_STREQ(assay_last_error(), "");
}

TEST(Abi, merge_names_bad_arguments_and_refuses_a_shifted_alias) {
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
  p.o = o;
  p.lse_a = lse_a;
  p.lse_b = lse_b;
  p.lse = lse;
  p.o_a_stride_row = p.o_b_stride_row = p.o_stride_row = 16;
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
      {"o_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_stride_row = 9; }},
      {"o_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_stride_row = 0; }},
      {"o_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_stride_row = 8; }},
      {"lse_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.lse_stride_row = 0; }},
      {"o_a_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_a_stride_row = 12; }},
      {"o_b_stride_head", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.o_b_stride_head = -8; }},
      {"lse_a_stride_row", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.lse_a_stride_row = -1; }},
      {"lse_b_stride_head", ASSAY_INVALID_ARGUMENT, [](auto &q) { q.lse_b_stride_head = -1; }},
      {"o_b is not aligned", ASSAY_INVALID_ARGUMENT, [&](auto &q) { q.o_b = b + 2; }},
      {"dtype", ASSAY_UNSUPPORTED, [](auto &q) { q.dtype = 9; }},
      {"o aliases o_a", ASSAY_INVALID_ARGUMENT,
       [&](auto &q) {
         q.o = a;
         q.o_stride_row = 24;
       }},
      {"lse aliases lse_b", ASSAY_INVALID_ARGUMENT,
       [&](auto &q) {
         q.lse = lse_b;
         q.lse_b_stride_row = 0;
       }},
  };
  assay_merge_state_params lse_only = p; // in place, next to an o of its own with its own strides
  lse_only.lse = lse_a;
  lse_only.o_stride_row = 24;
  alignas(16) float wide[40];
  lse_only.o = wide;
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

TEST(Abi, merge_states_names_bad_arguments_and_is_not_done_in_place) {
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
  p.o = o;
  p.lse = lse;
  p.o_in_stride_state = p.o_stride_row = 16;
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
      {"o_stride_row", [](auto &q) { q.o_stride_row = 8; }},
      {"lse_stride_row", [](auto &q) { q.lse_stride_row = 0; }},
      {"o aliases o_in", [&](auto &q) { q.o = in; }},
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

TEST(Abi, cascade_names_the_level) {
  PagedCase c;
  assay_cascade_level level = {c.p.kv, c.table};
  assay_cascade_params p = {};
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
  p.o = c.o;
  p.q_stride_batch = p.o_stride_batch = 256;
  p.q_stride_head = p.o_stride_head = 64;
  p.workspace = c.workspace;
  p.workspace_bytes = sizeof c.workspace;
  EXPECT_EQ(assay_cascade_attention_supports(&p), ASSAY_OK) << assay_last_error();
  struct {
    const char *names;
    std::function<void(assay_cascade_params &)> spoil;
  } cases[] = {
      {"sm_scale", [](auto &q) { q.sm_scale = INFINITY; }},
      {"num_splits", [](auto &q) { q.num_splits = (1 << 12) + 1; }},
      {"q_stride_head", [](auto &q) { q.q_stride_head = 12; }},
      {"o_stride_head", [](auto &q) { q.o_stride_head = 0; }},
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

TEST(Abi, the_plugin_table_lists_the_five_kernels_and_refuses_another_major) {
  EXPECT_EQ(assay_plugin_entry(ASSAY_ABI_MAJOR + 1), nullptr);
  const assay_plugin *plugin = assay_plugin_entry(ASSAY_ABI_MAJOR);
  ASSERT_NE(plugin, nullptr);
  EXPECT_GE(plugin->num_kernels, 5);
  for (int i = 0; i < plugin->num_kernels; ++i) {
    EXPECT_EQ(plugin->kernels[i].struct_size, sizeof(assay_kernel));
    EXPECT_NE(plugin->kernels[i].supports(nullptr), ASSAY_OK) << plugin->kernels[i].name;
  }
}

} // namespace
