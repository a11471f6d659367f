// SPDX-License-Identifier: Apache-2.0
// `assay bench --verify` of cascades and merges on the executor: right outputs pass, one wrong
// element, key or state is found.
#include "properties/cli/commands/bench_judge.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "kernels/bench/cells/cascade_layout.h"
#include "kernels/bench/cells/merge_layout.h"
#include "kernels/bench/verify/verify_cascade.h"
#include "properties/cli/commands/tests/expect_finding.h"

namespace assay {
namespace {

using namespace bench;

Judge judge() { return bench_judge(*assay_plugin_entry(ASSAY_ABI_MAJOR)); }

/// bf16 in +-[1, 2) by 2^-6, times a power of two that `exponent` has the bits of; two of them are
/// such an fp32.
std::vector<uint16_t> numbers(size_t n, unsigned seed, unsigned exponent = 0x3f80) {
  std::mt19937 rng(seed);
  std::vector<uint16_t> out(n);
  for (uint16_t &x : out)
    x = static_cast<uint16_t>(exponent | (rng() & 0x807e));
  return out;
}

void expect_none(const Verification &v) {
  EXPECT_TRUE(v.findings.empty()) << v.findings[0];
  EXPECT_GT(v.rows, 0u);
}

/// A cascade cell in host memory, its second set.
class HostCascade {
public:
  explicit HostCascade(const CascadeCell &cell)
      : layout_(cell, 2), pool_(numbers(layout_.pool_bytes() / sizeof(uint16_t), 1)),
        q_(numbers(layout_.query_rows() * cell.head_dim, 2, 0x3e80)),
        o_(layout_.query_rows() * cell.head_dim + kBandBytes),
        lse_(layout_.query_rows() + kBandBytes / 2) {
    call.kernel = "cascade_attention";
    call.levels = layout_.levels(1, pool_.data(), layout_.integers().data());
    call.params = layout_.params(ASSAY_TARGET_SIMT);
    assay_cascade_params &p = call.params;
    p.q = q_.data();
    p.out = o();
    p.lse = lse();
    p.levels = call.levels.data();
    uint64_t bytes = 0;
    EXPECT_EQ(assay_cascade_attention_workspace_size(&p, &bytes), ASSAY_OK) << assay_last_error();
    workspace_.resize(bytes);
    p.workspace = workspace_.data();
    p.workspace_bytes = bytes;
    call.run = [this] { launch(); };
  }

  void launch() {
    ASSERT_EQ(assay_cascade_attention(&call.params), ASSAY_OK) << assay_last_error();
  }
  Verification verify() { return verify_cascade(call, host_memory(), judge()); }

  uint16_t *o() { return o_.data() + kBandBytes / 2; }
  float *lse() { return lse_.data() + kBandBytes / 4; }
  /// K of one token and head of a segment.
  uint16_t *key(int level, int segment, int token, int head) {
    const assay_paged_kv &kv = call.levels[level].kv;
    const int page = kv.page_table[segment * kv.page_table_stride + token / kv.page_size];
    return pool_.data() + page * kv.k_stride_page + token % kv.page_size * kv.k_stride_token +
           head * kv.k_stride_head;
  }

  TimedCascade call;

private:
  CascadeLayout layout_;
  std::vector<uint16_t> pool_, q_, o_;
  std::vector<float> lse_;
  std::vector<std::byte> workspace_;
};

/// Rows for warpgroups, for tiles and for teams of warps; a last page partly filled.
const CascadeCell kTree = {"", 16, 8, 2, 64, 16, {{1, 300}, {4, 37}, {16, 21}}};

TEST(BenchJudgeCascade, RightKernelsPass) {
  HostCascade host(kTree);
  const Verification v = host.verify();
  expect_none(v);
  EXPECT_EQ(v.rows, sample_requests(std::vector<int32_t>(16, 358)).size() * 2 * 4);
}

TEST(BenchJudgeCascade, UncoveredRequestsPass) {
  HostCascade host(kTree);
  const int32_t served[] = {0, 4, 4, 8, 8}; // two of four segments; requests 8 .. 15 have none
  host.call.levels[1].segment_indptr = served;
  expect_none(host.verify());
}

template <class F>
void expect_cascade_found(const std::string &part, F after) {
  HostCascade host(kTree);
  host.call.run = [&] {
    host.launch();
    after(host);
  };
  expect_finding(host.verify(), part);
}

TEST(BenchJudgeCascade, OneWrongElementOfASampledRowIsFound) {
  // Two units in the last place. Of request 0 kv heads 1 and 0 are sampled.
  expect_cascade_found("request 0 head 7 dim 9: ", [](HostCascade &h) { h.o()[7 * 64 + 9] ^= 2; });
  expect_cascade_found("request 15 head 2 lse: ",
                       [](HostCascade &h) { h.lse()[15 * 8 + 2] *= 1.0001f; });
}

TEST(BenchJudgeCascade, EveryElementIsLookedAt) {
  const std::vector<int> sampled = sample_requests(std::vector<int32_t>(16, 358));
  int other = 0;
  while (std::find(sampled.begin(), sampled.end(), other) != sampled.end())
    ++other;
  const std::string at = "request " + std::to_string(other) + " head 1 ";
  expect_cascade_found(at + "dim 3: bits ffff, expected a finite value",
                       [&](HostCascade &h) { h.o()[(other * 8 + 1) * 64 + 3] = 0xffff; });
  expect_cascade_found(at + "lse: -inf, expected a finite value",
                       [&](HostCascade &h) { h.lse()[other * 8 + 1] = -INFINITY; });
  int run = 0;
  expect_cascade_found(at + "dim 3: bits ",
                       [&](HostCascade &h) { h.o()[(other * 8 + 1) * 64 + 3] ^= run++ % 2; });
  expect_cascade_found("o: 0 bytes in front of it and 2 behind it written",
                       [](HostCascade &h) { h.o()[16 * 8 * 64] = 0; });
}

TEST(BenchJudgeCascade, AKeyMisreadIsFound) {
  for (int level = 0; level < 3; ++level) {
    HostCascade host(kTree);
    host.call.run = [&] { // reads key 20 of the first segment as if it were key 19
      uint16_t *key = host.key(level, 0, 20, 1);
      const std::vector<uint16_t> right(key, key + 64);
      std::memcpy(key, host.key(level, 0, 19, 1), 128);
      host.launch();
      std::memcpy(key, right.data(), 128);
    };
    const Verification v = host.verify();
    expect_finding(v, "request 0 head 6 ");
    expect_finding(v, "outside");
  }
}

/// A merge cell in host memory.
class HostMerge {
public:
  explicit HostMerge(const MergeCell &cell)
      : layout_(cell), in_(numbers(layout_.in_bytes() / 2, 3)), out_(layout_.out_bytes()) {
    call = layout_.call(ASSAY_TARGET_SIMT, in_.data(), out_.data());
    call.run = [this, op = cell.op] { launch(op); };
  }

  void launch(MergeOp op) {
    const assay_merge_state_params pair = state_params(call);
    const assay_merge_states_params many = states_params(call);
    ASSERT_EQ(op == MergeOp::kState ? assay_merge_state(&pair) : assay_merge_states(&many),
              ASSAY_OK)
        << assay_last_error();
  }
  Verification verify() { return verify_merge(call, host_memory(), judge()); }

  TimedMerge call;

private:
  MergeLayout layout_;
  std::vector<uint16_t> in_;
  std::vector<std::byte> out_;
};

const MergeCell kMergeCells[] = {{"", MergeOp::kState, 7, 2, 4, 64},
                                 {"", MergeOp::kStates, 7, 3, 4, 64},
                                 {"", MergeOp::kStates, 3, 65, 4, 128}};

TEST(BenchJudgeMerge, RightKernelsPass) {
  for (const MergeCell &cell : kMergeCells) {
    HostMerge host(cell);
    const Verification v = host.verify();
    expect_none(v);
    EXPECT_EQ(v.rows, sample_requests(std::vector<int32_t>(cell.rows, 1)).size() * 2);
  }
}

TEST(BenchJudgeMerge, WrongOutputsAreFound) {
  for (const MergeCell &cell : kMergeCells) {
    const auto expect_found = [&](const std::string &part, auto after) {
      HostMerge host(cell);
      host.call.run = [&] {
        host.launch(cell.op);
        after(static_cast<uint16_t *>(host.call.o), host.call.lse);
      };
      expect_finding(host.verify(), part);
    };
    // Heads 1 and 2 of row 0 are sampled.
    expect_found("row 0 head 1 dim 5: ", [&](uint16_t *o, float *) { o[cell.head_dim + 5] ^= 2; });
    expect_found("row 0 head 2 lse: ", [&](uint16_t *, float *lse) { lse[2] *= 1.0001f; });
    expect_found("row 0 head 3 dim 5: bits 7fc0, expected a finite value",
                 [&](uint16_t *o, float *) { o[3 * cell.head_dim + 5] = 0x7fc0; });
  }
}

TEST(BenchJudgeMerge, AStateMisreadIsFound) {
  for (const MergeCell &cell : kMergeCells) {
    HostMerge host(cell);
    host.call.run = [&] { // merges the last state of row 0, head 1 as if it were the first
      auto *first = static_cast<uint16_t *>(const_cast<void *>(host.call.o_in)) + cell.head_dim;
      uint16_t *last = first + (cell.states - 1) * host.call.o_in_stride_state;
      const std::vector<uint16_t> right(last, last + cell.head_dim);
      std::memcpy(last, first, cell.head_dim * 2);
      host.launch(cell.op);
      std::memcpy(last, right.data(), cell.head_dim * 2);
    };
    expect_finding(host.verify(), "row 0 head 1 dim ");
  }
}

} // namespace
} // namespace assay
