// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/ranks/exchange_data.cuh"

#include "kernels/bench/cell_run.cuh"

#include <cuda_bf16.h>

#include <cmath>

namespace assay::bench {
namespace {

__device__ uint32_t mixed(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

// o in -1 .. 1, LSEs in -4 .. 4, and one state in 32 empty.
__global__ void fill_states(void *o, float *lse, int64_t states, int head_dim, bool fp32,
                            uint32_t seed) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < states * head_dim;
       i += int64_t{gridDim.x} * blockDim.x) {
    const uint32_t random = mixed(static_cast<uint32_t>(i) * 2654435761u ^ mixed(seed));
    const float x = static_cast<float>(random & 0xffff) / 32768.0f - 1.0f;
    if (fp32)
      static_cast<float *>(o)[i] = x;
    else
      static_cast<__nv_bfloat16 *>(o)[i] = __float2bfloat16(x);
    if (i < states)
      lse[i] = random >> 27 == 0 ? -INFINITY : static_cast<float>(random >> 16) / 8192.0f - 4.0f;
  }
}

__global__ void count_different(const uint32_t *a, const uint32_t *b, int64_t words,
                                unsigned long long *count) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
       i += int64_t{gridDim.x} * blockDim.x)
    if (a[i] != b[i]) atomicAdd(count, 1ull);
}

__global__ void count_nan(const __nv_bfloat16 *o, int64_t elements, unsigned long long *count) {
  for (int64_t i = threadIdx.x; i < elements; i += blockDim.x)
    if (__hisnan(o[i])) atomicAdd(count, 1ull);
}

__global__ void jitter(uint32_t *random, uint32_t most_ns) {
  *random = mixed(*random + 0x9e3779b9u);
  if (*random % 4 != 0) return;
  const uint64_t wait = mixed(*random) % most_ns;
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < wait);
}

} // namespace

void enqueue_jitter(cudaStream_t stream, uint32_t *random, uint32_t most_ns) {
  jitter<<<1, 1, 0, stream>>>(random, most_ns);
}

ExchangeData::ExchangeData(const Ranks &ranks, const ExchangeCell &c)
    : cell(c), ranks_(ranks), data_(ranks.count()) {
  const assay_exchange_params p = params(0, -1);
  check_status(assay_exchange_states_window_size(&p, &window_bytes_),
               "assay_exchange_states_window_size");
  windows_.resize(ranks.count());
  ranks.each([&](int r) {
    Rank &rank = data_[r];
    for (int set = 0; set < kStateSets; ++set) {
      rank.sets.push_back(std::make_unique<Set>(cell));
      const Set &s = *rank.sets.back();
      fill_states<<<128, 256>>>(s.o_in.get(), s.lse_in.get(), cell.states(), cell.head_dim,
                                cell.dtype == ASSAY_FP32, 16 * set + r);
    }
    const size_t everything = cell.states() * cell.head_dim * cell.bytes() * ranks.count();
    rank.gathered_o = std::make_unique<DeviceArray<char>>(everything);
    rank.gathered_lse = std::make_unique<DeviceArray<float>>(cell.states() * ranks.count());
    rank.window = std::make_unique<DeviceArray<char>>(window_bytes_);
    rank.status = std::make_unique<DeviceArray<uint32_t>>(1);
    rank.wrong = std::make_unique<DeviceArray<unsigned long long>>(1);
    windows_[r] = rank.window->get();
    ASSAY_BENCH_CHECK(cudaDeviceSynchronize());
  });
  clear();
  ranks.each([&](int r) {
    for (int set = 0; set < kStateSets; ++set)
      expect(r, set);
  });
}

void ExchangeData::clear() const {
  ranks_.each([&](int r) {
    ASSAY_BENCH_CHECK(cudaMemset(windows_[r], 0, window_bytes_));
    ASSAY_BENCH_CHECK(cudaMemset(data_[r].status->get(), 0, 4));
    ASSAY_BENCH_CHECK(cudaMemset(data_[r].wrong->get(), 0, 8));
    ASSAY_BENCH_CHECK(cudaDeviceSynchronize());
  });
}

assay_exchange_params ExchangeData::params(int rank, int set) const {
  assay_exchange_params p = {};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_CUDA;
  p.dtype = cell.dtype;
  p.lse_base = ASSAY_LSE_BASE_2;
  p.heads = cell.heads;
  p.num_ranks = ranks_.count();
  p.rank = rank;
  p.num_rows = p.max_rows = cell.rows;
  p.num_heads = cell.num_heads;
  p.head_dim = cell.head_dim;
  const int own = cell.own_heads(ranks_.count());
  p.o_in_stride_row = int64_t{cell.num_heads} * cell.head_dim;
  p.out_stride_row = int64_t{own} * cell.head_dim;
  p.o_in_stride_head = p.out_stride_head = cell.head_dim;
  p.lse_in_stride_row = cell.num_heads;
  p.lse_stride_row = own;
  p.lse_in_stride_head = p.lse_stride_head = 1;
  if (set < 0) return p;
  const Set &s = *data_[rank].sets[set];
  p.o_in = s.o_in.get();
  p.lse_in = s.lse_in.get();
  p.out = s.o.get();
  p.lse = s.lse.get();
  p.windows = windows_.data();
  p.window_bytes = window_bytes_;
  p.status = data_[rank].status->get();
  p.stream = ranks_.stream(rank).get();
  return p;
}

void ExchangeData::exchange(int rank, int set, bool enable_pdl, uint64_t timeout_ns) const {
  assay_exchange_params p = params(rank, set);
  p.enable_pdl = enable_pdl;
  p.timeout_ns = timeout_ns;
  check_status(assay_exchange_states(&p), "assay_exchange_states");
}

namespace {

/// merge_states of `ranks` states a row that lie one after the other.
assay_merge_states_params merge_of(const ExchangeCell &cell, int ranks, int heads) {
  assay_merge_states_params p = {};
  p.struct_size = sizeof p;
  p.target = ASSAY_TARGET_CUDA;
  p.dtype = cell.dtype;
  p.lse_base = ASSAY_LSE_BASE_2;
  p.num_rows = cell.rows;
  p.num_states = ranks;
  p.num_heads = heads;
  p.head_dim = cell.head_dim;
  p.o_in_stride_head = p.out_stride_head = cell.head_dim;
  p.o_in_stride_state = p.out_stride_row = int64_t{heads} * cell.head_dim;
  p.lse_in_stride_state = p.lse_stride_row = heads;
  p.lse_in_stride_head = p.lse_stride_head = 1;
  return p;
}

} // namespace

/// Every rank's states are copied here, row by row, and merged by the kernel of one GPU.
void ExchangeData::expect(int rank, int set) {
  const int ranks = ranks_.count();
  const int64_t row = int64_t{cell.num_heads} * cell.head_dim * cell.bytes();
  Rank &here = data_[rank];
  for (int r = 0; r < ranks; ++r) {
    const Set &from = *data_[r].sets[set];
    ASSAY_BENCH_CHECK(cudaMemcpy2D(here.gathered_o->get() + r * row, ranks * row, from.o_in.get(),
                                   row, row, cell.rows, cudaMemcpyDefault));
    ASSAY_BENCH_CHECK(cudaMemcpy2D(
        here.gathered_lse->get() + r * cell.num_heads, 4 * ranks * cell.num_heads,
        from.lse_in.get(), 4 * cell.num_heads, 4 * cell.num_heads, cell.rows, cudaMemcpyDefault));
  }
  const int own = cell.own_heads(ranks);
  const int first = cell.heads == ASSAY_EXCHANGE_ALL ? 0 : rank * own;
  assay_merge_states_params p = merge_of(cell, ranks, cell.num_heads);
  p.num_heads = own;
  p.o_in = here.gathered_o->get() + int64_t{first} * cell.head_dim * cell.bytes();
  p.lse_in = here.gathered_lse->get() + first;
  p.out = here.sets[set]->expected.get();
  p.out_stride_row = int64_t{own} * cell.head_dim;
  p.lse = nullptr;
  p.stream = ranks_.stream(rank).get();
  check_status(assay_merge_states(&p), "assay_merge_states");
  ASSAY_BENCH_CHECK(cudaStreamSynchronize(ranks_.stream(rank).get()));
}

void ExchangeData::with_nccl(int rank, const Nccl &nccl, bool merge) const {
  const Rank &here = data_[rank];
  const Set &set = *here.sets[0];
  const cudaStream_t stream = ranks_.stream(rank).get();
  const size_t elements = cell.states() * cell.head_dim;
  const bool all = cell.heads == ASSAY_EXCHANGE_ALL;
  if (all)
    nccl.all_gather(rank, set.o_in.get(), here.gathered_o->get(), elements, cell.bytes(),
                    set.lse_in.get(), here.gathered_lse->get(), cell.states(), stream);
  else
    nccl.all_to_all(rank, set.o_in.get(), here.gathered_o->get(), elements, cell.bytes(),
                    set.lse_in.get(), here.gathered_lse->get(), cell.states(), stream);
  if (!merge) return;
  assay_merge_states_params p = merge_of(cell, ranks_.count(), cell.own_heads(ranks_.count()));
  p.o_in = here.gathered_o->get();
  p.lse_in = here.gathered_lse->get();
  p.out = set.o.get();
  p.lse = set.lse.get();
  p.stream = stream;
  check_status(assay_merge_states(&p), "assay_merge_states");
}

int64_t ExchangeData::out_bytes() const {
  return int64_t{cell.rows} * cell.own_heads(ranks_.count()) * cell.head_dim * cell.bytes();
}

void ExchangeData::compare(int rank, int set) const {
  const Set &s = *data_[rank].sets[set];
  count_different<<<32, 256, 0, ranks_.stream(rank).get()>>>(
      reinterpret_cast<const uint32_t *>(s.o.get()),
      reinterpret_cast<const uint32_t *>(s.expected.get()), out_bytes() / 4,
      data_[rank].wrong->get());
}

uint64_t ExchangeData::wrong_words() const {
  uint64_t sum = 0;
  for (const Rank &rank : data_) {
    unsigned long long wrong = 0;
    ASSAY_BENCH_CHECK(cudaMemcpy(&wrong, rank.wrong->get(), 8, cudaMemcpyDefault));
    sum += wrong;
  }
  return sum;
}

uint32_t ExchangeData::status() const {
  uint32_t all = 0;
  for (const Rank &rank : data_) {
    uint32_t status = 0;
    ASSAY_BENCH_CHECK(cudaMemcpy(&status, rank.status->get(), 4, cudaMemcpyDefault));
    all |= status;
  }
  return all;
}

bool ExchangeData::all_nan(int rank, int set) const {
  const DeviceArray<unsigned long long> count(1);
  ASSAY_BENCH_CHECK(cudaMemset(count.get(), 0, 8));
  const int64_t elements = out_bytes() / 2;
  count_nan<<<1, 256>>>(reinterpret_cast<const __nv_bfloat16 *>(data_[rank].sets[set]->o.get()),
                        elements, count.get());
  unsigned long long found = 0;
  ASSAY_BENCH_CHECK(cudaMemcpy(&found, count.get(), 8, cudaMemcpyDefault));
  return static_cast<int64_t>(found) == elements;
}

} // namespace assay::bench
