// SPDX-License-Identifier: Apache-2.0
// Mistakes of one row in calls of production length, each of which every sample of rows may miss:
// the GPU names the row and the head by T0 and the LSE, and the host says outside.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "oracle/device/tiers.h"
#include "oracle/exact/dtype.h"
#include "oracle/judge/judge.h"
#include "oracle/rows/build.h"

namespace assay::oracle {
namespace {

/// bf16 in +-[2^-2, 2), by a counter.
__global__ void fill(uint16_t *to, size_t count, uint64_t seed) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint64_t z = (i + seed) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z ^= z >> 27;
    to[i] =
        static_cast<uint16_t>((z & 0x8000) | (0x3F80 - ((z >> 16 & 3) << 7)) | (z >> 20 & 0x7F));
  }
}

constexpr int kHeads = 8, kKvHeads = 2, kDim = 128, kPage = 16, kRequests = 4;
constexpr int kLengths[kRequests] = {131072, 70001, 8192, 131071};
constexpr int64_t kToken = int64_t{kDim} * kKvHeads, kPageElements = kToken * kPage;

/// The row that is made wrong, and the key that its head looks at.
constexpr int kRow = 0, kHead = 5, kKvHead = kHead / (kHeads / kKvHeads);
constexpr int kKey = 100001;

class Planted : public testing::Test {
protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    pages_ = 0;
    for (int length : kLengths)
      pages_ += (length + kPage - 1) / kPage;
    const size_t cache = static_cast<size_t>((pages_ + 1) * kPageElements);
    k_ = make<uint16_t>(cache);
    v_ = make<uint16_t>(cache);
    const size_t outputs = size_t{kRequests} * kHeads * kDim;
    q_ = make<uint16_t>(outputs);
    o_ = make<uint16_t>(outputs);
    lse_ = make<float>(outputs / kDim);
    fill<<<1024, 256>>>(k_, cache, 1);
    fill<<<1024, 256>>>(v_, cache, cache + 1);
    fill<<<16, 256>>>(q_, outputs, 2 * cache + 1);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    describe();
  }
  void TearDown() override {
    for (void *p : all_)
      cudaFree(p);
  }

  template <class T>
  T *make(size_t count) {
    void *p = nullptr;
    EXPECT_EQ(cudaMallocManaged(&p, count * sizeof(T)), cudaSuccess);
    all_.push_back(p);
    return static_cast<T *>(p);
  }

  /// Pages in an order of their own.
  void describe() {
    const int columns = (131072 + kPage - 1) / kPage;
    table_.assign(size_t{kRequests} * columns, -1);
    int64_t next = 0;
    for (int r = 0; r < kRequests; ++r)
      for (int i = 0; i < (kLengths[r] + kPage - 1) / kPage; ++i)
        table_[static_cast<size_t>(r * columns + i)] = static_cast<int32_t>(next++ * 7919 % pages_);
    params_.struct_size = sizeof params_;
    params_.dtype = params_.kv_dtype = ASSAY_BF16;
    params_.batch = params_.kv.rows = kRequests;
    params_.q_len = 1;
    params_.num_qo_heads = kHeads;
    params_.num_kv_heads = kKvHeads;
    params_.head_dim = kDim;
    params_.sm_scale = 0.0883f;
    params_.q = q_;
    params_.out = o_;
    params_.lse = lse_;
    params_.q_stride_head = params_.out_stride_head = kDim;
    params_.q_stride_batch = params_.out_stride_batch = kHeads * kDim;
    params_.lse_stride_head = 1;
    params_.lse_stride_batch = kHeads;
    assay_paged_kv &kv = params_.kv;
    kv.k = k_;
    kv.v = v_;
    kv.k_stride_page = kv.v_stride_page = kPageElements;
    kv.k_stride_token = kv.v_stride_token = kToken;
    kv.k_stride_head = kv.v_stride_head = kDim;
    kv.page_table = table_.data();
    kv.seq_lens = kLengths;
    kv.page_table_stride = kv.max_pages = columns;
    kv.page_size = kPage;
    rows_ = std::get<AttentionRows>(rows_of(params_));
    assay_arithmetic &a = model_.arithmetic;
    a.mma_block = 16;
    a.mma_fraction_bits = 25;
    a.p_format = ASSAY_FORMAT_CALL;
    a.sum_format = ASSAY_FORMAT_FP32;
    a.exponential = ASSAY_EXP_BASE2;
    a.exp2_rel_error = a.log2_abs_error = 0x1p-22;
    a.rcp_rel_error = 0x1p-23;
    a.sum_depth = 20;
    a.tile_tokens = 64;
    a.max_parallel_states = 4;
    a.max_splits = 64;
    a.merge_stages = 1;
  }

  size_t run_of(int key) const { return static_cast<size_t>(rows_.first_run[kRow] + key / kPage); }
  uint16_t *key(int position, int kv_head) const {
    return k_ + rows_.runs[run_of(position)].k_at + position % kPage * kToken + kv_head * kDim;
  }
  /// The key gets a few per cent of its head's weight.
  void look_at(int position) {
    const uint16_t *q = q_ + (kRow * kHeads + kHead) * kDim;
    for (int i = 0; i < kDim; ++i)
      store_element(ASSAY_BF16, key(position, kKvHead), i,
                    static_cast<float>(
                        round_to(format_of(ASSAY_BF16), 0.9 * load_element(ASSAY_BF16, q, i))));
  }

  using Elements = std::vector<std::array<ElementBounds, 3>>;
  Elements exact(const AttentionRows &rows) {
    return judge_.judge(rows, {o_, lse_}, model_, nullptr, {.elements = true}).elements;
  }
  void write(const Elements &elements, int row, int head) {
    const size_t at = static_cast<size_t>(row * kHeads + head);
    for (size_t i = 0; i < kDim; ++i)
      store_element(ASSAY_BF16, o_, static_cast<int64_t>(at * kDim + i),
                    static_cast<float>(
                        round_to(format_of(ASSAY_BF16), elements[at * (kDim + 1) + i][0].mid)));
    lse_[at] = static_cast<float>(elements[at * (kDim + 1) + kDim][0].mid);
  }
  void write_right() {
    const Elements elements = exact(rows_);
    for (int row = 0; row < kRequests; ++row)
      for (int head = 0; head < kHeads; ++head)
        write(elements, row, head);
  }

  void expect_found(const std::string &what) {
    const TierReport report = judge_.judge(rows_, {o_, lse_}, model_);
    ASSERT_EQ(report.open.size(), 1u) << what;
    EXPECT_EQ(report.open[0].row, kRow) << what;
    EXPECT_EQ(report.open[0].head, kHead) << what;
    EXPECT_EQ(judge_one(rows_, {o_, lse_}, model_, kRow, kHead).verdict, Verdict::kOutside) << what;
  }
  /// What the one head gives when it takes other rows for the call's.
  void expect_found_with(const std::string &what,
                         const std::function<void(AttentionRows &)> &change) {
    AttentionRows wrong = rows_;
    change(wrong);
    write(exact(wrong), kRow, kHead);
    expect_found(what);
    write(right_, kRow, kHead);
  }
  void expect_found_in(const std::string &what,
                       const std::function<void(uint16_t *, float *)> &change) {
    change(o_ + (kRow * kHeads + kHead) * kDim, lse_ + kRow * kHeads + kHead);
    expect_found(what);
    write(right_, kRow, kHead);
  }

  /// Runs of row kRow without the keys [begin, end).
  static void drop(AttentionRows &rows, int begin, int end) {
    std::vector<KeyRun> runs;
    const auto first = rows.runs.begin() + rows.first_run[kRow];
    const auto last = rows.runs.begin() + rows.first_run[kRow + 1];
    int position = 0;
    const auto add = [&](KeyRun run, int from, int to) {
      if (from >= to) return;
      run.k_at += (from - run.position) * kToken;
      run.v_at += (from - run.position) * kToken;
      run.count = to - from;
      run.position = position;
      position += run.count;
      runs.push_back(run);
    };
    for (auto run = first; run != last; ++run) {
      add(*run, run->position, std::min(run->position + run->count, begin));
      add(*run, std::max(run->position, end), run->position + run->count);
    }
    const auto change = static_cast<int64_t>(runs.size()) - (last - first);
    rows.runs.erase(first, last);
    rows.runs.insert(rows.runs.begin() + rows.first_run[kRow], runs.begin(), runs.end());
    for (size_t list = kRow + 1; list < rows.first_run.size(); ++list)
      rows.first_run[list] += change;
    rows.end[kRow] = position;
  }

  int64_t pages_ = 0;
  uint16_t *k_ = nullptr, *v_ = nullptr, *q_ = nullptr, *o_ = nullptr;
  float *lse_ = nullptr;
  std::vector<int32_t> table_;
  assay_paged_params params_ = assay_paged_params_init();
  AttentionRows rows_;
  KernelModel model_;
  Elements right_;
  TierJudge judge_;

private:
  std::vector<void *> all_;
};

TEST_F(Planted, EachIsNamed) {
  look_at(kKey);
  look_at(0);
  look_at(kLengths[kRow] - 1);
  write_right();
  right_ = exact(rows_);
  ASSERT_TRUE(judge_.judge(rows_, {o_, lse_}, model_).open.empty());

  expect_found_with("one key of 131072", [](AttentionRows &r) { drop(r, kKey, kKey + 1); });
  expect_found_with("the first key", [](AttentionRows &r) { drop(r, 0, 1); });
  expect_found_with("the last key", [](AttentionRows &r) { drop(r, 131071, 131072); });
  expect_found_with("one split", [](AttentionRows &r) { drop(r, 98304, 102400); });
  expect_found_with("one page",
                    [](AttentionRows &r) { drop(r, kKey / 16 * 16, kKey / 16 * 16 + 16); });
  expect_found_with("a page twice", [&](AttentionRows &r) {
    KeyRun &run = r.runs[run_of(kKey) + 1];
    run.k_at = r.runs[run_of(kKey)].k_at;
    run.v_at = r.runs[run_of(kKey)].v_at;
  });
  expect_found_with("a page of another request", [&](AttentionRows &r) {
    r.runs[run_of(kKey)].k_at = r.runs[static_cast<size_t>(r.first_run[1])].k_at;
  });
  expect_found_with("values of another page", [&](AttentionRows &r) {
    r.runs[run_of(kKey)].v_at = r.runs[static_cast<size_t>(r.first_run[1])].v_at;
  });
  expect_found_with("the next token's key",
                    [&](AttentionRows &r) { r.runs[run_of(kKey)].k_at += kToken; });
  expect_found_with("the next token's value",
                    [&](AttentionRows &r) { r.runs[run_of(kKey)].v_at += kToken; });
  expect_found_with("keys of the neighbour's head in one page",
                    [&](AttentionRows &r) { r.runs[run_of(kKey)].k_at -= kDim; });
  expect_found_with("values of the neighbour's head in one page",
                    [&](AttentionRows &r) { r.runs[run_of(kKey)].v_at -= kDim; });
  expect_found_with("the neighbour's query", [](AttentionRows &r) { r.q_at[kRow] += kDim; });
  expect_found_with("another request's query",
                    [](AttentionRows &r) { r.q_at[kRow] += kHeads * kDim; });
  expect_found_with("another request's list", [](AttentionRows &r) {
    r.list[kRow] = 3;
    r.end[kRow] = 131071;
  });
  expect_found_with("a scale of 1 + 2^-8", [](AttentionRows &r) { r.sm_scale *= 1.00390625f; });
  expect_found_with("softcap", [](AttentionRows &r) { r.softcap = 30.0f; });

  expect_found_in("LSE in the other base", [](uint16_t *, float *lse) { *lse *= 1.442695f; });
  // 2^-12 is within what 2,049 rescales by exponentials of 2^-22 may do.
  expect_found_in("LSE off by 2^-8", [](uint16_t *, float *lse) { *lse += 0x1p-8f; });
  expect_found_in("LSE of an empty row", [](uint16_t *, float *lse) { *lse = -INFINITY; });
  expect_found_in("one element's sign", [](uint16_t *o, float *) {
    int largest = 0;
    for (int i = 1; i < kDim; ++i)
      if ((o[i] & 0x7FFF) > (o[largest] & 0x7FFF)) largest = i;
    o[largest] ^= 0x8000;
  });
  expect_found_in("one element that is NaN", [](uint16_t *o, float *) { o[127] = 0x7FC0; });
  expect_found_in("one element that is infinite", [](uint16_t *o, float *) { o[64] = 0xFF80; });
  expect_found_in("a row of zeros",
                  [](uint16_t *o, float *) { std::fill(o, o + kDim, uint16_t{0}); });
  expect_found_in("the row of the head in front",
                  [](uint16_t *o, float *) { std::copy(o - kDim, o, o); });
}

} // namespace
} // namespace assay::oracle
