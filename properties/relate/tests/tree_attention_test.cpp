// SPDX-License-Identifier: Apache-2.0
// tree_attention: that it finds the keys which a case shares, and reads them once, whatever stands
// between scores and weights.
#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "properties/call/materialise.h"
#include "properties/relate/outcome.h"
#include "properties/relate/shared_work.h"

namespace assay {
namespace {

/// Four requests that share 192 keys, and two of them 64 more each time.
Problem tree() {
  Problem p;
  p.batch = 4;
  p.seq_lens = {300, 280, 270, 300};
  p.num_kv_heads = 2;
  p.group_size = 2;
  p.page_size = 16;
  p.sharing = Sharing::kTree;
  p.num_splits = 1;
  p.q.regime = p.k.regime = p.v.regime = Regime::kNormal;
  return p;
}

Problem with_features(Problem p) {
  p.q_len = 2;
  p.logits_soft_cap = Softcap::kThirty;
  p.alibi = Alibi::kStandard;
  p.sinks = Sinks::kNormal;
  return p;
}

uint64_t bytes_loaded(const Problem &p, bool shared) {
  const std::unique_ptr<Sut> sut = make_sut(own_kernel("tree_attention"));
  const Outcome run = run_tensors(materialise(p, {.unshare = !shared}), *sut);
  EXPECT_TRUE(run.ok()) << run.check.message;
  return sut->take_counters().at("global_load_bytes");
}

/// Two requests of 2,100 keys, of which they share 2,048. Each thread's loads of items, plan and
/// partial states count, too.
TEST(TreeAttention, reads_shared_keys_once) {
  Problem p = tree();
  p.sharing = Sharing::kChain;
  p.batch = 6;
  p.seq_lens = {2100, 0, 0, 0, 0, 2100};
  p.head_dim = 128;
  const auto expect_read_once = [](const Problem &q) {
    const double keys = double{2} * 2048 * q.num_kv_heads * q.head_dim * (is_fp8(q) ? 1 : 2);
    const auto flat = static_cast<double>(bytes_loaded(q, false));
    const double saved = flat - static_cast<double>(bytes_loaded(q, true));
    EXPECT_LT(saved, keys);
    EXPECT_GT(saved, 0.7 * keys);
  };
  expect_read_once(p);
  expect_read_once(with_features(p));
  p.kv = KvType::kE4m3;
  expect_read_once(with_features(p));
}

TEST(TreeAttention, declares_the_nodes_that_a_case_has) {
  for (const Problem &p : {tree(), with_features(tree())}) {
    const std::unique_ptr<Sut> sut = make_sut(own_kernel("tree_attention"));
    const std::vector<SharedKeys> nodes = shared_work(materialise(p), *sut);
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_EQ(nodes[0].requests, (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(nodes[0].end, 192);
    EXPECT_EQ(nodes[0].splits, (std::vector{192}));
    for (int n : {1, 2}) {
      EXPECT_EQ(nodes[n].requests, (std::vector{n - 1, n + 1}));
      EXPECT_EQ(nodes[n].begin, 192);
      EXPECT_EQ(nodes[n].end, 256);
    }
  }
}

TEST(TreeAttention, a_window_shares_nothing) {
  Problem p = tree();
  p.window_left = 249;
  const std::unique_ptr<Sut> sut = make_sut(own_kernel("tree_attention"));
  EXPECT_TRUE(shared_work(materialise(p), *sut).empty());
  EXPECT_EQ(bytes_loaded(p, true), bytes_loaded(p, false));
}

} // namespace
} // namespace assay
