// SPDX-License-Identifier: Apache-2.0
// Devices with less shared memory than an H200: v2 falls back to blocks of four warps, and what
// fits in no form is refused by name; devices for which the library has no code; and no device at
// all. This file stands in for device_info.cpp.
#include "kernels/abi/kernel_table.h"
#include "kernels/abi/plugin.h"
#include "kernels/blocks/decode_policy.h"
#include "kernels/cascade/cascade_schedule.h"
#include "kernels/host/device_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {
constexpr int64_t kH200 = 227 * 1024, kA100 = 163 * 1024, kAda = 99 * 1024;
int64_t limit = kH200;
int sms = 2;
bool runs_code = true;
} // namespace

bool built_with(assay_target target) { return target == ASSAY_TARGET_SIMT; }
int cuda_capability() { return 0; }
DeviceFacts device_facts(assay_target) {
  return {sms, limit, true, runs_code, 120, "sm_80, sm_90a"};
}

namespace {

// The sizes that README tables and device limits are compared with.
static_assert(decode_shared_bytes(64, 2, 2, 4) < kAda && decode_shared_bytes(128, 2, 2, 4) < kAda);
static_assert(decode_shared_bytes(256, 2, 1, 4) > kAda &&
              decode_shared_bytes(256, 2, 1, 4) < kA100);
static_assert(decode_shared_bytes(64, 2, 1, 8) < kA100 &&
              decode_shared_bytes(128, 2, 1, 8) < kA100);
static_assert(decode_shared_bytes(128, 2, 2, 8) > kA100 &&
              decode_shared_bytes(128, 2, 2, 8) < kH200);
static_assert(decode_shared_bytes(256, 1, 1, 4) == decode_shared_bytes(256, 2, 1, 4));

/// One request of `len` keys in order, one kv head with four query heads, bf16, on the executor.
struct Call {
  assay_paged_params p = assay_paged_params_init();
  std::vector<uint16_t> q, k, v, o;
  std::vector<float> lse;
  std::vector<char> workspace, plan;
  int32_t len, page = 0;

  Call(int head_dim, int32_t keys) : len(keys) {
    std::mt19937 rng(3);
    const auto fill = [&](std::vector<uint16_t> &to, size_t n) { // +-[0.25, 2) in bf16
      for (to.resize(n); n > 0; --n)
        to[n - 1] = static_cast<uint16_t>((rng() & 0x8000) | (0x3e80 + rng() % 0x180));
    };
    const size_t elements = size_t(keys) * head_dim;
    fill(q, size_t(4) * head_dim);
    fill(k, elements);
    fill(v, elements);
    o.resize(q.size());
    lse.resize(4);
    p.struct_size = sizeof p;
    p.target = ASSAY_TARGET_SIMT;
    p.dtype = p.kv_dtype = ASSAY_BF16;
    p.batch = p.q_len = p.num_kv_heads = 1;
    p.num_qo_heads = 4;
    p.head_dim = head_dim;
    p.sm_scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    p.q = q.data();
    p.out = o.data();
    p.lse = lse.data();
    p.q_stride_batch = p.out_stride_batch = 4 * head_dim;
    p.q_stride_head = p.out_stride_head = head_dim;
    p.lse_stride_batch = 4;
    p.lse_stride_head = 1;
    p.kv.k = k.data();
    p.kv.v = v.data();
    p.kv.k_stride_page = p.kv.v_stride_page = static_cast<int64_t>(elements);
    p.kv.k_stride_token = p.kv.v_stride_token = p.kv.k_stride_head = p.kv.v_stride_head = head_dim;
    p.kv.page_table = &page;
    p.kv.seq_lens = &len;
    p.kv.page_table_stride = p.kv.max_pages = p.kv.rows = 1;
    p.kv.page_size = keys;
  }

  /// v2 with a plan: both must have chosen the same form.
  assay_status run_v2() {
    uint64_t bytes = 0;
    if (assay_status status = assay_paged_attention_v2_workspace_size(&p, &bytes)) return status;
    workspace.resize(bytes + 16);
    p.workspace =
        reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(workspace.data()) + 15) / 16 * 16);
    p.workspace_bytes = bytes;
    if (assay_status status = assay_paged_attention_v2_plan_size(&p, &bytes)) return status;
    plan.resize(bytes + 16);
    p.plan = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(plan.data()) + 15) / 16 * 16);
    p.plan_bytes = bytes;
    if (assay_status status = assay_paged_attention_v2_plan(&p)) return status;
    return assay_paged_attention_v2(&p);
  }

  std::vector<float> output() const {
    std::vector<float> out;
    for (uint16_t bits : o) {
      const uint32_t wide = uint32_t{bits} << 16;
      float f;
      std::memcpy(&f, &wide, sizeof f);
      out.push_back(f);
    }
    return out;
  }
};

/// Warps a block of v2: the states of its declared key order.
int warps_of(const assay_paged_params &p) {
  assay_key_tile tiles[256];
  std::vector<int64_t> first(static_cast<size_t>(p.batch) + 1);
  int32_t states = 0;
  EXPECT_EQ(assay_plugin_entry(ASSAY_ABI_MAJOR)->kernels[1].key_order(&p, tiles, 256, first.data()),
            ASSAY_OK)
      << assay_last_error();
  for (int64_t i = 0; i < first[1]; ++i)
    states = std::max(states, tiles[i].state + 1);
  return states;
}

/// Unsupported by every entry point, for want of shared memory.
void expect_refused(Call &call, int64_t needed) {
  const std::string message = std::to_string(needed) +
                              " bytes of shared memory in a block, this "
                              "device has " +
                              std::to_string(limit);
  uint64_t bytes = 0;
  assay_paged_choice choice = {};
  const auto refused = [&](assay_status status) {
    EXPECT_EQ(status, ASSAY_UNSUPPORTED);
    EXPECT_NE(std::string(assay_last_error()).find(message), std::string::npos)
        << assay_last_error();
  };
  refused(assay_paged_attention_v1(&call.p));
  refused(assay_paged_attention_v2(&call.p));
  refused(assay_paged_attention_v1_supports(&call.p));
  refused(assay_paged_attention_v2_supports(&call.p));
  refused(assay_paged_attention_v2_workspace_size(&call.p, &bytes));
  refused(assay_paged_attention_v2_plan(&call.p));
  refused(assay_paged_attention_v2_plan_size(&call.p, &bytes));
  refused(assay_paged_attention_choose(&call.p, call.len, call.len, &choice));
}

class SharedMemory : public testing::Test {
protected:
  void TearDown() override {
    limit = kH200;
    sms = 2;
    runs_code = true;
  }
};

TEST_F(SharedMemory, V2FallsBackToFourWarps) {
  for (int head_dim : {64, 128}) {
    Call call(head_dim, 700);
    ASSERT_EQ(assay_paged_attention_v1(&call.p), ASSAY_OK) << assay_last_error();
    const std::vector<float> expected = call.output();
    for (int64_t bytes : {kH200, kAda}) {
      limit = bytes;
      EXPECT_EQ(warps_of(call.p), bytes == kAda ? 4 : 8);
      ASSERT_EQ(call.run_v2(), ASSAY_OK) << assay_last_error();
      const std::vector<float> got = call.output();
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], expected[i], 0.01) << i;
    }
    limit = kH200;
  }
}

TEST_F(SharedMemory, WhatDoesNotFitIsRefusedByName) {
  limit = kAda;
  Call wide(256, 64);
  expect_refused(wide, decode_shared_bytes(256, 2, 1, 4));
  Call call(128, 64);
  limit = decode_shared_bytes(128, 2, 1, 4);
  EXPECT_EQ(call.run_v2(), ASSAY_OK) << assay_last_error();
  --limit;
  expect_refused(call, limit + 1);
}

TEST_F(SharedMemory, SixteenRowsNeedMore) {
  Call call(128, 64);
  call.p.q_len = 4; // 16 rows of the kv head
  call.p.q_stride_token = call.p.out_stride_token = 0;
  limit = decode_shared_bytes(128, 2, 2, 4) - 1;
  ASSERT_GT(limit, decode_shared_bytes(128, 2, 1, 4));
  expect_refused(call, limit + 1);
}

/// The output of a cascade of one level with the keys of `call`, and the states of its key order.
std::pair<std::vector<float>, int32_t> cascade(Call &call) {
  constexpr int32_t kStarts[] = {0, 1};
  const assay_cascade_level level = {call.p.kv, kStarts, {}};
  assay_cascade_params p{};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_SIMT;
  p.dtype = ASSAY_BF16;
  p.batch = p.num_kv_heads = p.num_levels = 1;
  p.num_qo_heads = 4;
  p.head_dim = call.p.head_dim;
  p.sm_scale = call.p.sm_scale;
  p.q = call.q.data();
  p.out = call.o.data();
  p.q_stride_batch = p.out_stride_batch = 4 * p.head_dim;
  p.q_stride_head = p.out_stride_head = p.head_dim;
  p.levels = &level;
  std::fill(call.o.begin(), call.o.end(), uint16_t{0x7fc0});
  EXPECT_EQ(assay_cascade_attention_workspace_size(&p, &p.workspace_bytes), ASSAY_OK);
  std::vector<char> workspace(p.workspace_bytes + 16);
  p.workspace =
      reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(workspace.data()) + 15) / 16 * 16);
  EXPECT_EQ(assay_cascade_attention(&p), ASSAY_OK) << assay_last_error();
  assay_key_tile tiles[256] = {};
  int64_t first[2] = {};
  const assay_plugin &own = *assay_plugin_entry(ASSAY_ABI_MAJOR);
  EXPECT_EQ(find_kernel(own, "cascade_attention")->key_order(&p, tiles, 256, first), ASSAY_OK);
  int32_t states = 0;
  for (const assay_key_tile &tile : tiles)
    states = std::max(states, tile.state + 1);
  return {call.output(), states};
}

// A block of the narrow kernel asks for 128 KB with head_dim 256.
TEST_F(SharedMemory, CascadesOfFewRowsFallBackToTiles) {
  static_assert(narrow_shared_bytes(128) < kAda && narrow_shared_bytes(256) > kAda);
  CascadeShape shape{1, 4, 1, 256, 2, true, true};
  EXPECT_EQ(cascade_path(shape, {1, 64}), CascadePath::kNarrow);
  shape.narrow_fits = false;
  EXPECT_EQ(cascade_path(shape, {1, 64}), CascadePath::kMma);
  Call call(256, 700);
  const auto [expected, teams] = cascade(call);
  limit = kAda;
  const auto [got, one] = cascade(call);
  EXPECT_GT(teams, 1); // the warps of a team
  EXPECT_EQ(one, 1);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 0.01) << i;
}

TEST_F(SharedMemory, WithoutCodeForTheDeviceEveryEntryPointSaysSo) {
  Call call(128, 64);
  ASSERT_EQ(call.run_v2(), ASSAY_OK) << assay_last_error(); // which has a workspace and a plan now
  const std::vector<uint16_t> before = call.o;
  assay_paged_params &p = call.p;
  assay_merge_state_params merge{};
  merge.struct_size = sizeof merge;
  merge.dtype = ASSAY_BF16;
  merge.num_heads = 1;
  merge.head_dim = 128;
  uint64_t bytes = 0;
  assay_paged_choice choice = {};
  runs_code = false;
  const auto refused = [](assay_status status) {
    EXPECT_EQ(status, ASSAY_UNSUPPORTED);
    EXPECT_STREQ(assay_last_error(), "the device has compute capability 12.0, and this library was "
                                     "compiled for sm_80, sm_90a");
  };
  refused(assay_paged_attention_v1(&p));
  refused(assay_paged_attention_v1_supports(&p));
  refused(assay_paged_attention_v2(&p));
  refused(assay_paged_attention_v2_supports(&p));
  refused(assay_paged_attention_v2_plan(&p));
  refused(assay_paged_attention_v2_plan_size(&p, &bytes));
  refused(assay_paged_attention_v2_workspace_size(&p, &bytes));
  refused(assay_tree_attention_supports(&p));
  refused(assay_tree_attention_plan_size(&p, &bytes));
  refused(assay_tree_attention_workspace_size(&p, &bytes));
  refused(assay_paged_attention_choose(&p, call.len, call.len, &choice));
  refused(assay_merge_state(&merge));
  refused(assay_merge_state_supports(&merge));
  EXPECT_EQ(call.o, before);
}

TEST_F(SharedMemory, WithoutADeviceTheLaunchSaysSo) {
  limit = 0;
  Call call(256, 64);
  EXPECT_EQ(assay_paged_attention_v1_supports(&call.p), ASSAY_OK) << assay_last_error();
}

TEST_F(SharedMemory, WithoutADeviceThereIsNoPlan) {
  Call call(128, 64);
  uint64_t bytes = 0;
  const auto refused = [](assay_status status) {
    EXPECT_EQ(status, ASSAY_LAUNCH_FAILED);
    EXPECT_NE(std::string(assay_last_error()).find("no CUDA device answers"), std::string::npos)
        << assay_last_error();
  };
  sms = 0;
  refused(assay_paged_attention_v2_plan_size(&call.p, &bytes));
  refused(assay_paged_attention_v2(&call.p));
  refused(assay_paged_attention_v2_supports(&call.p));
  refused(assay_paged_attention_v2_workspace_size(&call.p, &bytes));
}

} // namespace
} // namespace assay
