// SPDX-License-Identifier: Apache-2.0
// What calls do on the host: nothing that passes allocates, and a message names the argument in
// full. Replaces the program's operator new.
#include "kernels/abi/assay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <string>

namespace {
thread_local int allocations = 0;
}

void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

/// Nothing is read: a call that is only checked, or has an empty batch, sees no memory.
template <class T>
T *somewhere(int n) {
  return reinterpret_cast<T *>(uintptr_t{0x10000} * static_cast<uintptr_t>(n));
}

assay_paged_kv cache(int32_t rows) {
  assay_paged_kv kv{};
  kv.k = somewhere<void>(1);
  kv.v = somewhere<void>(2);
  kv.k_stride_page = kv.v_stride_page = 16 * 8 * 128;
  kv.k_stride_token = kv.v_stride_token = 8 * 128;
  kv.k_stride_head = kv.v_stride_head = 128;
  kv.page_table = somewhere<int32_t>(3);
  kv.seq_lens = somewhere<int32_t>(4);
  kv.page_table_stride = kv.max_pages = 512;
  kv.rows = rows;
  kv.page_size = 16;
  return kv;
}

template <class Params>
Params attention(int32_t batch) {
  Params p{};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_SIMT;
  p.dtype = ASSAY_BF16;
  p.batch = batch;
  p.num_qo_heads = 32;
  p.num_kv_heads = 8;
  p.head_dim = 128;
  p.sm_scale = 0.1f;
  p.q = somewhere<void>(5);
  p.out = somewhere<void>(6);
  p.lse = somewhere<float>(7);
  p.q_stride_batch = p.out_stride_batch = 32 * 128;
  p.q_stride_head = p.out_stride_head = 128;
  p.lse_stride_batch = 32;
  p.lse_stride_head = 1;
  p.workspace = somewhere<void>(8);
  p.workspace_bytes = uint64_t{1} << 40;
  return p;
}

assay_paged_params paged(int32_t batch, assay_dtype kv_dtype) {
  auto p = attention<assay_paged_params>(batch);
  p.kv_dtype = kv_dtype;
  p.q_len = 2;
  p.window_left = -1;
  p.q_stride_token = p.out_stride_token = 32 * 128;
  p.lse_stride_token = 32;
  p.alibi_slopes = p.sinks = somewhere<float>(9);
  p.kv = cache(batch);
  p.plan = somewhere<void>(10);
  p.plan_bytes = uint64_t{1} << 40;
  return p;
}

/// Several levels, of which one is empty.
struct Cascade {
  assay_cascade_level levels[ASSAY_MAX_CASCADE_LEVELS];
  assay_cascade_params p;

  explicit Cascade(int32_t batch) : p(attention<assay_cascade_params>(batch)) {
    for (int l = 0; l < ASSAY_MAX_CASCADE_LEVELS; ++l)
      levels[l] = {cache(l == 3 ? 0 : 1 + l), somewhere<int32_t>(9), {}};
    p.num_levels = ASSAY_MAX_CASCADE_LEVELS;
    p.levels = levels;
  }
};

template <class Params>
Params merge(int32_t rows) {
  Params p{};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_SIMT;
  p.dtype = ASSAY_BF16;
  p.num_rows = rows;
  p.num_heads = 32;
  p.head_dim = 128;
  p.out = somewhere<void>(5);
  p.lse = somewhere<float>(6);
  p.out_stride_row = 32 * 128;
  p.out_stride_head = 128;
  p.lse_stride_row = 32;
  p.lse_stride_head = 1;
  return p;
}

assay_merge_state_params two_states(int32_t rows) {
  auto p = merge<assay_merge_state_params>(rows);
  p.o_a = somewhere<void>(1);
  p.o_b = somewhere<void>(2);
  p.lse_a = somewhere<float>(3);
  p.lse_b = somewhere<float>(4);
  p.o_a_stride_row = p.o_b_stride_row = 32 * 128;
  p.o_a_stride_head = p.o_b_stride_head = 128;
  p.lse_a_stride_row = p.lse_b_stride_row = 32;
  p.lse_a_stride_head = p.lse_b_stride_head = 1;
  return p;
}

assay_merge_states_params many_states(int32_t rows) {
  auto p = merge<assay_merge_states_params>(rows);
  p.num_states = 40;
  p.o_in = somewhere<void>(1);
  p.lse_in = somewhere<float>(2);
  p.o_in_stride_state = 32 * 128;
  p.o_in_stride_head = 128;
  p.lse_in_stride_state = 32;
  p.lse_in_stride_head = 1;
  return p;
}

/// The call passes, and allocates nothing.
template <class Call>
void expect_free(const char *what, Call call) {
  const int before = allocations;
  const assay_status status = call();
  const int after = allocations;
  EXPECT_EQ(status, ASSAY_OK) << what << ": " << assay_last_error();
  EXPECT_EQ(after - before, 0) << what;
}
#define EXPECT_FREE(call) expect_free(#call, [&] { return call; })

TEST(ApiHostPath, the_counter_counts) {
  const int before = allocations;
  const std::string long_text(100, 'x');
  EXPECT_EQ(allocations, before + 1) << long_text;
}

TEST(ApiHostPath, paged_calls_that_pass_do_not_allocate) {
  uint64_t bytes = 0;
  assay_paged_choice choice{};
  for (const assay_dtype kv_dtype : {ASSAY_BF16, ASSAY_E4M3}) {
    const assay_paged_params p = paged(16, kv_dtype), empty = paged(0, kv_dtype);
    EXPECT_FREE(assay_paged_attention_v1_supports(&p));
    EXPECT_FREE(assay_paged_attention_v2_supports(&p));
    EXPECT_FREE(assay_tree_attention_supports(&p));
    EXPECT_FREE(assay_paged_attention_v2_workspace_size(&p, &bytes));
    EXPECT_FREE(assay_paged_attention_v2_plan_size(&p, &bytes));
    EXPECT_FREE(assay_tree_attention_workspace_size(&p, &bytes));
    EXPECT_FREE(assay_tree_attention_plan_size(&p, &bytes));
    EXPECT_FREE(assay_paged_attention_choose(&p, 16 * 100, 200, &choice));
    EXPECT_FREE(assay_paged_attention_v1(&empty));
    EXPECT_FREE(assay_paged_attention_v2(&empty));
    EXPECT_FREE(assay_paged_attention_v2_plan(&empty));
    EXPECT_FREE(assay_tree_attention(&empty));
    EXPECT_FREE(assay_tree_attention_plan(&empty));
    EXPECT_FREE(assay_tree_attention_plan_lengths(&empty));
  }
}

TEST(ApiHostPath, cascades_that_pass_do_not_allocate) {
  const Cascade cascade(16), empty(0);
  uint64_t bytes = 0;
  EXPECT_FREE(assay_cascade_attention_supports(&cascade.p));
  EXPECT_FREE(assay_cascade_attention_workspace_size(&cascade.p, &bytes));
  EXPECT_FREE(assay_cascade_attention(&empty.p));
}

TEST(ApiHostPath, merges_that_pass_do_not_allocate) {
  const assay_merge_state_params two = two_states(16), no_pairs = two_states(0);
  const assay_merge_states_params many = many_states(16), no_rows = many_states(0);
  EXPECT_FREE(assay_merge_state_supports(&two));
  EXPECT_FREE(assay_merge_states_supports(&many));
  EXPECT_FREE(assay_merge_state(&no_pairs));
  EXPECT_FREE(assay_merge_states(&no_rows));
}

/// The message of a check for a right call that `spoil` has changed.
template <class Params>
std::string message(assay_status (*supports)(const Params *), Params p,
                    const std::function<void(Params &)> &spoil) {
  spoil(p);
  EXPECT_NE(supports(&p), ASSAY_OK);
  return assay_last_error();
}

TEST(ApiHostPath, names_of_a_cache_are_whole) {
  const auto said = [](const std::function<void(assay_paged_params &)> &spoil) {
    return message(&assay_paged_attention_v2_supports, paged(16, ASSAY_BF16), spoil);
  };
  EXPECT_EQ(said([](auto &p) { p.kv.rows = -1; }), "kv.rows is -1, expected 0 to 16777216");
  EXPECT_EQ(said([](auto &p) { p.kv.k_stride_page = 12; }),
            "kv.k_stride_page is 12, expected a non-negative multiple of 8 elements");
  EXPECT_EQ(said([](auto &p) { p.kv.v_stride_token = int64_t{1} << 31; }),
            "kv.v_stride_token is 2147483648, expected below 2^31 elements");
  EXPECT_EQ(said([](auto &p) { p.kv.max_pages = p.kv.page_size = 1 << 16; }),
            "kv.max_pages is 65536 with kv.page_size 65536, expected at most 1073741824 tokens a "
            "row");
  EXPECT_EQ(said([](auto &p) { p.kv.page_table_stride = 511; }),
            "kv.page_table_stride is 511, expected at least max_pages 512");
  EXPECT_EQ(said([](auto &p) { p.kv.page_table_stride = (1 << 28) + 1; }),
            "kv.page_table_stride is 268435457 for 16 lists, expected at most 2^32 entries in all");
  EXPECT_EQ(said([](auto &p) { p.kv.page_table_stride_head = 1 << 29; }),
            "kv.page_table_stride_head is 536870912 for 8 lists, expected at most 2^32 entries in "
            "all");
  EXPECT_EQ(said([](auto &p) { p.kv.page_table = nullptr; }), "kv.page_table is null");
  EXPECT_EQ(said([](auto &p) { p.plan_bytes = 0; }).substr(0, 32),
            "plan_bytes is 0, batch 16 needs ");
}

TEST(ApiHostPath, names_of_a_level_are_whole) {
  Cascade cascade(16);
  const auto said = [&](const std::function<void(assay_cascade_level &)> &spoil) {
    const assay_cascade_level right = cascade.levels[2];
    spoil(cascade.levels[2]);
    EXPECT_NE(assay_cascade_attention_supports(&cascade.p), ASSAY_OK);
    cascade.levels[2] = right;
    return std::string(assay_last_error());
  };
  EXPECT_EQ(said([](auto &l) { l.kv.max_pages = -1; }),
            "levels[2].kv.max_pages is -1, expected 0 to 1073741824");
  EXPECT_EQ(said([](auto &l) { l.kv.k_stride_head = -8; }),
            "levels[2].kv.k_stride_head is -8, expected a non-negative multiple of 8 elements");
  EXPECT_EQ(said([](auto &l) { l.kv.v = somewhere<char>(1) + 4; }),
            "levels[2].kv.v is not aligned to 16 bytes");
  EXPECT_EQ(said([](auto &l) { l.segment_indptr = nullptr; }), "levels[2].segment_indptr is null");
}

TEST(ApiHostPath, names_of_states_are_whole) {
  const auto two = [](const std::function<void(assay_merge_state_params &)> &spoil) {
    return message(&assay_merge_state_supports, two_states(16), spoil);
  };
  const auto many = [](const std::function<void(assay_merge_states_params &)> &spoil) {
    return message(&assay_merge_states_supports, many_states(16), spoil);
  };
  EXPECT_EQ(two([](auto &p) { p.lse_b_stride_head = -1; }),
            "lse_b_stride_head is -1, expected >= 0");
  EXPECT_EQ(two([](auto &p) { p.o_a = nullptr; }), "o_a is null");
  EXPECT_EQ(two([](auto &p) { p.o_b = p.out, p.o_b_stride_row += 8; }),
            "out aliases o_b with other strides; in place needs equal strides");
  EXPECT_EQ(two([](auto &p) { p.lse_a = p.lse, p.lse_a_stride_row += 8; }),
            "lse aliases lse_a with other strides; in place needs equal strides");
  EXPECT_EQ(many([](auto &p) { p.o_in_stride_state = 4; }),
            "o_in_stride_state is 4, expected a non-negative multiple of 8 elements");
  EXPECT_EQ(many([](auto &p) { p.lse_in_stride_state = -2; }),
            "lse_in_stride_state is -2, expected >= 0");
  EXPECT_EQ(many([](auto &p) { p.lse_stride_row = -1; }), "lse_stride_row is -1, expected >= 0");
}

} // namespace
