// SPDX-License-Identifier: Apache-2.0
// `assay bench --verify` on the executor: right outputs pass, one wrong element, key or stray write
// is found.
#include "properties/cli/commands/bench_judge.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "kernels/bench/verify/verify_paged.h"
#include "properties/cli/commands/tests/expect_finding.h"

namespace assay {
namespace {

using bench::kBandBytes;
using bench::TimedCall;
using bench::Verification;

/// A small cell in host memory, run by the executor. Sequences in shuffled pages, NHD.
class HostCall {
public:
  HostCall(const char *kernel, assay_dtype kv_dtype, std::vector<int32_t> lens, int q_len = 1)
      : lens_(std::move(lens)) {
    call.kernel = kernel;
    call.seq_lens = lens_;
    const int batch = static_cast<int>(lens_.size());
    const int max_pages = 16, pages = batch * max_pages;
    std::mt19937 rng(5);
    for (int i = 0; i < pages; ++i)
      call.page_table.push_back(i);
    std::shuffle(call.page_table.begin(), call.page_table.end(), rng);
    const int size = kv_dtype == ASSAY_BF16 ? 2 : 1;
    pool_.resize(size_t(pages) * kPage * kKvHeads * kDim * size);
    v_pool_.resize(pool_.size());
    for (auto *pool : {&pool_, &v_pool_})
      for (size_t i = 0; i < pool->size(); ++i) // bf16 in +-[1, 2) by 2^-6; fp8 without NaN
        (*pool)[i] = static_cast<uint8_t>(size == 1 ? rng() & 0xbf
                                          : i % 2   ? 0x3f | (rng() & 0x80)
                                                    : 0x80 | (rng() & 0x7e));
    const size_t rows = size_t(batch) * q_len * kQoHeads;
    q_.resize(rows * kDim);
    for (uint16_t &x : q_)
      x = static_cast<uint16_t>(0x3e80 | (rng() & 0x80ff));
    o_.resize(rows * kDim + kBandBytes);
    lse_.resize(rows + kBandBytes / 2);
    assay_paged_params &p = call.params;
    p = {};
    p.struct_size = sizeof p;
    p.target = ASSAY_TARGET_SIMT;
    p.dtype = ASSAY_BF16;
    p.kv_dtype = kv_dtype;
    p.batch = p.kv.rows = batch;
    p.q_len = q_len;
    p.num_qo_heads = kQoHeads;
    p.num_kv_heads = kKvHeads;
    p.head_dim = kDim;
    p.sm_scale = 0.125f;
    p.window_left = -1;
    p.q = q_.data();
    p.out = o_.data() + kBandBytes / 2;
    p.lse = lse_.data() + kBandBytes / 4;
    p.q_stride_head = p.out_stride_head = kDim;
    p.q_stride_token = p.out_stride_token = kQoHeads * kDim;
    p.q_stride_batch = p.out_stride_batch = q_len * kQoHeads * kDim;
    p.lse_stride_head = 1;
    p.lse_stride_token = kQoHeads;
    p.lse_stride_batch = q_len * kQoHeads;
    p.kv.k = pool_.data();
    p.kv.v = v_pool_.data();
    p.kv.k_stride_head = p.kv.v_stride_head = kDim;
    p.kv.k_stride_token = p.kv.v_stride_token = kKvHeads * kDim;
    p.kv.k_stride_page = p.kv.v_stride_page = kPage * kKvHeads * kDim;
    p.kv.page_table = call.page_table.data();
    p.kv.seq_lens = call.seq_lens.data();
    p.kv.page_table_stride = p.kv.max_pages = max_pages;
    p.kv.page_size = kPage;
    call.run = [this] { launch(); };
  }

  void launch() {
    assay_paged_params &p = call.params;
    const bool v2 = call.kernel == "paged_attention_v2";
    ASSERT_EQ(v2 ? assay_paged_attention_v2(&p) : assay_paged_attention_v1(&p), ASSAY_OK)
        << assay_last_error();
  }

  Verification verify() {
    if (call.kernel == "paged_attention_v2") {
      uint64_t bytes = 0;
      EXPECT_EQ(assay_paged_attention_v2_workspace_size(&call.params, &bytes), ASSAY_OK);
      workspace_.resize(bytes);
      call.params.workspace = workspace_.data();
      call.params.workspace_bytes = bytes;
    }
    return verify_call(call, host_memory(), bench_judge(*assay_plugin_entry(ASSAY_ABI_MAJOR)));
  }

  uint16_t *o() { return o_.data() + kBandBytes / 2; }
  float *lse() { return lse_.data() + kBandBytes / 4; }
  /// K of one token and head.
  uint8_t *key(int request, int token, int head) {
    const int page = call.page_table[request * 16 + token / kPage];
    const int size = call.params.kv_dtype == ASSAY_BF16 ? 2 : 1;
    return pool_.data() + ((size_t(page) * kPage + token % kPage) * kKvHeads + head) * kDim * size;
  }

  static constexpr int kQoHeads = 8, kKvHeads = 4, kDim = 64, kPage = 16;
  TimedCall call;

private:
  std::vector<int32_t> lens_;
  std::vector<uint8_t> pool_, v_pool_;
  std::vector<std::byte> workspace_;
  std::vector<uint16_t> q_, o_;
  std::vector<float> lse_;
};

const std::vector<int32_t> kLens = {37, 0, 250, 5, 64, 3, 111, 16};

TEST(SampleRequests, EndsLongestShortestAndNoneTwice) {
  const std::vector<int> chosen = bench::sample_requests(kLens);
  for (int request : {0, 7, 2, 5})
    EXPECT_EQ(std::count(chosen.begin(), chosen.end(), request), 1) << request;
  EXPECT_LE(chosen.size(), 6u);
  EXPECT_EQ(bench::sample_requests({9}), (std::vector<int>{0}));
  EXPECT_TRUE(bench::sample_requests({}).empty());
}

TEST(BenchJudge, RightKernelsPass) {
  for (const char *kernel : {"paged_attention_v1", "paged_attention_v2"})
    for (assay_dtype kv : {ASSAY_BF16, ASSAY_E4M3, ASSAY_E5M2}) {
      HostCall host(kernel, kv, kLens);
      const Verification v = host.verify();
      EXPECT_TRUE(v.findings.empty()) << kernel << " " << kv << ": " << v.findings[0];
      EXPECT_EQ(v.rows, bench::sample_requests(kLens).size() * 2 * 2);
    }
}

TEST(BenchJudge, FeaturesAreSampledToo) {
  for (const char *kernel : {"paged_attention_v1", "paged_attention_v2"}) {
    HostCall host(kernel, ASSAY_E4M3, {37, 2, 250}, 3);
    std::vector<float> k_scale = {0.5f, 1.5f, 1.0f, 0.75f}, v_scale = {2.0f};
    std::vector<float> slopes(8, 0.0625f), sinks = {1, -1, 2, 0.5f, -INFINITY, 1, 3, 0};
    slopes[3] = 0.25f;
    host.call.params.k_scale = k_scale.data();
    host.call.params.k_scale_stride = 1;
    host.call.params.v_scale = v_scale.data();
    host.call.params.alibi_slopes = slopes.data();
    host.call.params.sinks = sinks.data();
    host.call.params.logits_soft_cap = 20.0f;
    host.call.params.window_left = 39;
    // A sink of -inf leaves a row without keys at -inf: no token may be without keys here.
    host.call.seq_lens[1] = 3;
    const Verification v = host.verify();
    EXPECT_TRUE(v.findings.empty()) << kernel << ": " << v.findings[0];
  }
}

/// Runs both kernels with `after` spoiling what they wrote.
template <class F>
void expect_found(const std::string &part, F after) {
  for (const char *kernel : {"paged_attention_v1", "paged_attention_v2"}) {
    HostCall host(kernel, ASSAY_BF16, kLens);
    host.call.run = [&] {
      host.launch();
      after(host);
    };
    expect_finding(host.verify(), part);
  }
}

TEST(BenchJudge, OneWrongElementOfASampledRowIsFound) {
  // Two units in the last place. Request 2 is the longest; its sampled kv heads are 3 and 0.
  expect_found("request 2 head 7 dim 9: ", [](HostCall &h) { h.o()[(2 * 8 + 7) * 64 + 9] ^= 2; });
  expect_found("request 2 head 6 lse: ", [](HostCall &h) { h.lse()[2 * 8 + 6] *= 1.0001f; });
}

TEST(BenchJudge, AKeyMisreadIsFound) {
  for (const char *kernel : {"paged_attention_v1", "paged_attention_v2"})
    for (assay_dtype kv : {ASSAY_BF16, ASSAY_E4M3}) {
      HostCall host(kernel, kv, kLens);
      host.call.run = [&] { // reads key 199 of request 2, kv head 3, as if it were key 198
        const size_t bytes = size_t(64) * (kv == ASSAY_BF16 ? 2 : 1);
        const std::vector<uint8_t> right(host.key(2, 199, 3), host.key(2, 199, 3) + bytes);
        std::memcpy(host.key(2, 199, 3), host.key(2, 198, 3), bytes);
        host.launch();
        std::memcpy(host.key(2, 199, 3), right.data(), bytes);
      };
      const Verification v = host.verify();
      expect_finding(v, "request 2 head 6 ");
      expect_finding(v, "outside");
    }
}

TEST(BenchJudge, EveryElementIsLookedAt) {
  // The sampled kv heads of request 4 are 1 and 2, query heads 2 to 5: the oracle sees no head 0.
  expect_found("request 4 head 0 dim 3: bits ffff, expected a finite value",
               [](HostCall &h) { h.o()[4 * 8 * 64 + 3] = 0xffff; });
  expect_found("request 1 head 2 dim 0: bits 3f80, expected 0 of an empty row",
               [](HostCall &h) { h.o()[(8 + 2) * 64] = 0x3f80; });
  expect_found("request 1 head 2 lse: 0, expected -inf of an empty row",
               [](HostCall &h) { h.lse()[8 + 2] = 0.0f; });
  int run = 0;
  expect_found("in a second run", [&](HostCall &h) { h.o()[4 * 8 * 64 + 3] ^= run++ % 2; });
  expect_found("o: 0 bytes in front of it and 2 behind it written",
               [](HostCall &h) { h.o()[8 * 8 * 64] = 0; });
  expect_found("lse: 4 bytes in front of it and 0 behind it written",
               [](HostCall &h) { h.lse()[-1] = 0; });
}

} // namespace
} // namespace assay
