// SPDX-License-Identifier: Apache-2.0
// How long T0, T1 and LSEs of a call take, or (`first`) T0, rows as one and LSEs alone, and
// (`small`) how many small calls are judged a second: oracle_device_timing [first|small] [REQUESTS
// KEYS]...
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "oracle/device/tiers.h"
#include "oracle/exact/dtype.h"
#include "oracle/rows/build.h"
#include "oracle/tests/flat_order.h"

namespace assay::oracle {
namespace {

constexpr int kHeads = 32, kKvHeads = 8, kDim = 128, kPage = 16, kTile = 64;

/// N(0, 1) by a counter.
__global__ void fill(__nv_bfloat16 *to, size_t count, uint64_t seed) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint64_t z = (i + seed) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    const float a = (static_cast<float>(z >> 40) + 1.0f) * 0x1p-24f;
    const float b = static_cast<float>(z & 0xFFFFFF) * 0x1p-24f;
    to[i] = __float2bfloat16(sqrtf(-2.0f * logf(a)) * cospif(2.0f * b));
  }
}

template <class T>
struct Array {
  T *data = nullptr;
  size_t count;
  explicit Array(size_t n) : count(n) {
    if (cudaMalloc(&data, n * sizeof(T)) != cudaSuccess) {
      std::printf("no memory\n");
      std::exit(1);
    }
  }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() { cudaFree(data); }
};

enum class Timed { kEvery, kFirst, kSmall };

void time_shape(int requests, int keys, Timed timed) {
  const int columns = (keys + kPage - 1) / kPage;
  const size_t page = size_t{kKvHeads} * kPage * kDim;
  const size_t cache = static_cast<size_t>(requests) * static_cast<size_t>(columns) * page;
  const size_t outputs = static_cast<size_t>(requests) * kHeads * kDim;
  Array<__nv_bfloat16> k(cache), v(cache), q(outputs), o(outputs);
  Array<float> lse(outputs / kDim);
  fill<<<1024, 256>>>(k.data, cache, 1);
  fill<<<1024, 256>>>(v.data, cache, cache + 1);
  fill<<<64, 256>>>(q.data, outputs, 2 * cache + 1);
  cudaMemset(o.data, 0, outputs * 2);
  cudaMemset(lse.data, 0, lse.count * 4);
  std::vector<int32_t> table(static_cast<size_t>(requests) * static_cast<size_t>(columns));
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<int32_t>(table.size() - 1 - i);
  const std::vector<int32_t> lengths(static_cast<size_t>(requests), keys);
  assay_paged_params p = assay_paged_params_init();
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.batch = p.kv.rows = requests;
  p.q_len = 1;
  p.num_qo_heads = kHeads;
  p.num_kv_heads = kKvHeads;
  p.head_dim = kDim;
  p.sm_scale = 0.088388348f;
  p.q = q.data;
  p.out = o.data;
  p.lse = lse.data;
  p.q_stride_head = p.out_stride_head = kDim;
  p.q_stride_batch = p.out_stride_batch = kHeads * kDim;
  p.lse_stride_head = 1;
  p.lse_stride_batch = kHeads;
  p.kv.k = k.data;
  p.kv.v = v.data;
  p.kv.k_stride_head = p.kv.v_stride_head = kDim;
  p.kv.k_stride_token = p.kv.v_stride_token = kKvHeads * kDim;
  p.kv.k_stride_page = p.kv.v_stride_page = static_cast<int64_t>(page);
  p.kv.page_table = table.data();
  p.kv.seq_lens = lengths.data();
  p.kv.page_table_stride = p.kv.max_pages = columns;
  p.kv.page_size = kPage;
  const AttentionRows rows = std::get<AttentionRows>(rows_of(p));
  KernelModel model;
  assay_arithmetic &a = model.arithmetic;
  a.mma_block = 16;
  a.mma_fraction_bits = 25;
  a.p_format = ASSAY_FORMAT_CALL;
  a.exp2_rel_error = a.log2_abs_error = 0x1p-22f;
  a.rcp_rel_error = 0x1p-23f;
  a.sum_depth = 32;
  a.tile_tokens = kTile;
  a.max_parallel_states = 1;
  a.max_splits = 64;
  a.merge_stages = 1;
  const int splits = std::clamp(keys / 2048, 1, 64), tiles = (keys + kTile - 1) / kTile;
  model.order = test::flat_order(requests, [&](int) {
    TileOrder order;
    for (int i = 0; i < tiles; ++i)
      order.push_back({i * splits / tiles, 0, i * kTile, std::min((i + 1) * kTile, keys)});
    return order;
  });
  TierJudge judge;
  const CallOutputs out{o.data, lse.data};
  const int tier = timed == Timed::kFirst ? 0 : 1;
  const auto run = [&](bool elements) {
    return judge.judge(rows, out, model, nullptr,
                       {.first_tier_alone = timed == Timed::kFirst, .elements = elements});
  };
  // The exact outputs of the sharper tier, rounded: what a right kernel might have written.
  const TierReport first = run(true);
  std::vector<__nv_bfloat16> right(outputs);
  std::vector<float> right_lse(lse.count);
  double bounds = 0.0;
  for (size_t pair = 0; pair < lse.count; ++pair) {
    const auto *of = &first.elements[pair * (kDim + 1)];
    for (size_t i = 0; i < kDim; ++i) {
      right[pair * kDim + i] = __float2bfloat16(static_cast<float>(of[i][tier].mid));
      bounds += of[i][tier].bound;
    }
    right_lse[pair] = static_cast<float>(of[kDim][0].mid);
  }
  cudaMemcpy(o.data, right.data(), outputs * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(lse.data, right_lse.data(), lse.count * 4, cudaMemcpyHostToDevice);
  double best = INFINITY, host = INFINITY;
  size_t open = 0;
  double row = NAN;
  for (int i = 0; i < (timed == Timed::kSmall ? 500 : 5); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const TierReport report = run(false);
    const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
    host = std::min(host, all.count());
    best = std::min(best, report.device_ms);
    open = report.open.size();
    row = report.decided.worst_ratio_row;
  }
  std::printf(
      "%d x %d keys, %s: %.3f ms of the GPU, %.3f ms in all, %.2f million outputs a second, "
      "%zu of %zu rows left to the host, largest ratio of a row %.4f, mean bound %.9e\n",
      requests, keys, tier == 0 ? "T0, rows as one and LSE" : "every tier but T2", best, host,
      static_cast<double>(outputs + lse.count) / host * 1e-3, open, lse.count, row,
      bounds / static_cast<double>(outputs));
}

} // namespace
} // namespace assay::oracle

int main(int argc, char **argv) {
  using assay::oracle::time_shape, assay::oracle::Timed;
  int at = 1;
  const std::string_view word = argc > at ? argv[at] : "";
  const Timed timed = word == "first"   ? Timed::kFirst
                      : word == "small" ? Timed::kSmall
                                        : Timed::kEvery;
  if (timed != Timed::kEvery) ++at;
  if (at + 1 >= argc && timed == Timed::kSmall) {
    for (const int requests : {1, 2, 4, 8})
      time_shape(requests, 200, timed);
  } else if (at + 1 >= argc) {
    time_shape(64, 8192, timed);
    time_shape(256, 1024, timed);
    time_shape(8, 131072, timed);
  }
  for (; at + 1 < argc; at += 2)
    time_shape(std::atoi(argv[at]), std::atoi(argv[at + 1]), timed);
  return 0;
}
