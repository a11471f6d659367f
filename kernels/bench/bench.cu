// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cell_run.cuh"
#include "kernels/bench/floor.cuh"
#include "kernels/bench/host_time.cuh"
#include "kernels/bench/versus/versus.cuh"

#include <cmath>
#include <memory>
#include <numeric>
#include <random>

namespace assay::bench {
namespace {

assay_dtype abi_dtype(KvDtype dtype) {
  return dtype == KvDtype::kBf16 ? ASSAY_BF16 : dtype == KvDtype::kE4m3 ? ASSAY_E4M3 : ASSAY_E5M2;
}

/// Device memory of a cell: `sets` disjoint page sets in one K and one V pool, one query batch.
struct CellData {
  Cell cell;
  std::vector<int32_t> lens;
  int sets, max_pages;
  int64_t pages_per_set, page_elements;
  std::unique_ptr<DeviceArray<char>> pool; // K pool, then V pool
  std::unique_ptr<DeviceArray<uint16_t>> q, o;
  std::unique_ptr<DeviceArray<float>> lse;
  std::unique_ptr<DeviceArray<int32_t>> seq_lens, tables; // [sets][batch][max_pages]
  std::unique_ptr<DeviceArray<char>> workspace, plan;
  Stream stream;

  CellData(const Cell &c, int num_sets) : cell(c), lens(cell_lengths(c)), sets(num_sets) {
    max_pages = (cell.seq + cell.page_size - 1) / cell.page_size;
    pages_per_set = 0;
    for (int32_t len : lens)
      pages_per_set += (len + cell.page_size - 1) / cell.page_size;
    page_elements = int64_t{cell.page_size} * cell.num_kv_heads * cell.head_dim;
    const int64_t bytes = 2 * pages_per_set * sets * page_elements * bytes_of(cell.kv_dtype);
    pool = std::make_unique<DeviceArray<char>>(bytes);
    fill_cache(pool->get(), bytes, cell.kv_dtype, stream.get());
    const int64_t rows = int64_t{cell.batch} * cell.num_qo_heads;
    q = std::make_unique<DeviceArray<uint16_t>>(rows * cell.head_dim);
    o = std::make_unique<DeviceArray<uint16_t>>(rows * cell.head_dim + kBandBytes);
    lse = std::make_unique<DeviceArray<float>>(rows + kBandBytes / 2);
    fill_bf16(q->get(), rows * cell.head_dim, 2, stream.get());
    seq_lens = std::make_unique<DeviceArray<int32_t>>(lens);
    tables = std::make_unique<DeviceArray<int32_t>>(shuffled_tables());
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(stream.get()));
  }

  /// Pages of a set in random order, as after some serving; sets do not share pages.
  std::vector<int32_t> shuffled_tables() const {
    std::mt19937_64 rng(7);
    std::vector<int32_t> result(int64_t{sets} * cell.batch * max_pages, -1);
    std::vector<int32_t> ids(pages_per_set);
    for (int s = 0; s < sets; ++s) {
      std::iota(ids.begin(), ids.end(), static_cast<int32_t>(s * pages_per_set));
      std::shuffle(ids.begin(), ids.end(), rng);
      int64_t next = 0;
      for (int b = 0; b < cell.batch; ++b)
        for (int p = 0; p < (lens[b] + cell.page_size - 1) / cell.page_size; ++p)
          result[(int64_t{s} * cell.batch + b) * max_pages + p] = ids[next++];
    }
    return result;
  }

  assay_paged_params params(int set) const {
    assay_paged_params p = assay_paged_params_init();
    p.target = ASSAY_TARGET_CUDA;
    p.dtype = ASSAY_BF16;
    p.kv_dtype = abi_dtype(cell.kv_dtype);
    p.batch = cell.batch;
    p.q_len = 1;
    p.num_qo_heads = cell.num_qo_heads;
    p.num_kv_heads = cell.num_kv_heads;
    p.head_dim = cell.head_dim;
    p.sm_scale = 1.0f / std::sqrt(static_cast<float>(cell.head_dim));
    p.q = q->get();
    p.out = o->get() + kBandBytes / 2; // a band on either side
    p.lse = lse->get() + kBandBytes / 4;
    p.q_stride_batch = p.out_stride_batch = int64_t{cell.num_qo_heads} * cell.head_dim;
    p.q_stride_head = p.out_stride_head = cell.head_dim;
    p.lse_stride_batch = cell.num_qo_heads;
    p.lse_stride_head = 1;
    p.kv.k = pool->get();
    p.kv.v = pool->get() + pages_per_set * sets * page_elements * bytes_of(cell.kv_dtype);
    p.kv.k_stride_page = p.kv.v_stride_page = page_elements;
    const bool nhd = cell.layout == Layout::kNhd;
    const int64_t d = cell.head_dim;
    p.kv.k_stride_token = p.kv.v_stride_token = nhd ? cell.num_kv_heads * d : d;
    p.kv.k_stride_head = p.kv.v_stride_head = nhd ? d : cell.page_size * d;
    p.kv.page_table = tables->get() + int64_t{set} * cell.batch * max_pages;
    p.kv.seq_lens = seq_lens->get();
    p.kv.page_table_stride = p.kv.max_pages = max_pages;
    p.kv.rows = cell.batch;
    p.kv.page_size = cell.page_size;
    p.stream = stream.get();
    p.even_lengths = even_lengths(p);
    if (workspace) {
      p.workspace = workspace->get();
      p.workspace_bytes = workspace->size();
    }
    if (plan) {
      p.plan = plan->get();
      p.plan_bytes = plan->size();
    }
    return p;
  }

  /// A hint that only lengths known on the host can give.
  int32_t even_lengths(const assay_paged_params &p) const {
    const int64_t total = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    assay_paged_choice choice = {};
    check_status(assay_paged_attention_choose(&p, total,
                                              *std::max_element(lens.begin(), lens.end()), &choice),
                 "choose");
    return choice.even_lengths;
  }

  /// Workspace and plan of v2.
  void prepare_v2() {
    uint64_t bytes = 0;
    assay_paged_params p = params(0);
    check_status(assay_paged_attention_v2_workspace_size(&p, &bytes), "workspace_size");
    workspace = std::make_unique<DeviceArray<char>>(bytes);
    ASSAY_BENCH_CHECK(cudaMemset(workspace->get(), 0, bytes));
    check_status(assay_paged_attention_v2_plan_size(&p, &bytes), "plan_size");
    plan = std::make_unique<DeviceArray<char>>(bytes);
    run_plan();
  }
  void run_plan() const {
    const assay_paged_params p = params(0);
    check_status(assay_paged_attention_v2_plan(&p), "plan");
  }
};

/// A call on the first page set, and what it wrote.
Verification verify_kernel(const CellData &data, const char *kernel,
                           const assay_paged_params &params, const std::function<void()> &run,
                           const Judge &judge) {
  TimedCall call;
  call.kernel = kernel;
  call.params = params;
  call.seq_lens = data.lens;
  call.page_table.resize(int64_t{data.cell.batch} * data.max_pages);
  ASSAY_BENCH_CHECK(cudaMemcpy(call.page_table.data(), data.tables->get(),
                               call.page_table.size() * sizeof(int32_t), cudaMemcpyDeviceToHost));
  call.run = run;
  return verify_call(call, device_memory(), judge);
}

/// Both versions, v2 with its plan.
void time_host_of(const CellData &data, CellResult &result) {
  const assay_paged_params p = data.params(0);
  const auto time = [&](const char *name, auto call, auto supports) {
    time_host(data.stream, name, p, call, supports, result.kernels[name]);
  };
  time("paged_attention_v1", &assay_paged_attention_v1, &assay_paged_attention_v1_supports);
  time("paged_attention_v2", &assay_paged_attention_v2, &assay_paged_attention_v2_supports);
}

void run_decode_on_host(const Cell &cell, CellResult &result) {
  CellData data(cell, 1);
  data.prepare_v2();
  time_host_of(data, result);
}

void run_decode(const Cell &cell, const Options &options, const DeviceInfo &device,
                CellResult &result) {
  result.bytes = kv_bytes(cell, cell_lengths(cell));
  const int sets = set_count(result.bytes, device.l2_bytes, options);
  CellData data(cell, sets);
  const FloorSets floor = {data.pool->get(), result.bytes, sets};
  const auto floor_us = [&](bool enable_pdl) {
    return read_floor_us(floor, data.stream, device.multiprocessors, options.replays, enable_pdl);
  };
  result.floor = {floor_us(false), floor_us(true)};
  const auto measure = [&](const char *name, auto kernel) {
    const auto us = [&](bool enable_pdl) {
      return graph_median_us(data.stream, std::max(sets, 4), options.replays, [&](int i) {
        assay_paged_params p = data.params(i % sets);
        p.enable_pdl = enable_pdl;
        check_status(kernel(&p), name);
      });
    };
    result.kernels[name] = {us(false), us(true)};
  };
  measure("paged_attention_v1", assay_paged_attention_v1);
  data.prepare_v2();
  result.plan_us = graph_median_us(data.stream, 16, options.replays, [&](int) { data.run_plan(); });
  measure("paged_attention_v2", assay_paged_attention_v2);
  time_host_of(data, result);
  if (!options.judge) return;
  const auto verify = [&](const char *name, auto kernel) {
    const assay_paged_params p = data.params(0);
    const auto run = [&] {
      check_status(kernel(&p), name);
      ASSAY_BENCH_CHECK(cudaStreamSynchronize(data.stream.get()));
    };
    result.verified[name] = verify_kernel(data, name, p, run, options.judge);
  };
  verify("paged_attention_v1", &assay_paged_attention_v1);
  verify("paged_attention_v2", &assay_paged_attention_v2);
}

} // namespace

bool device_info(DeviceInfo &info, std::string &error) {
  int device = 0, driver = 0;
  cudaDeviceProp properties;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, device);
  if (status != cudaSuccess) {
    error = cudaGetErrorString(status);
    return false;
  }
  cudaDriverGetVersion(&driver);
  info.name = properties.name;
  info.driver = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  info.multiprocessors = properties.multiProcessorCount;
  info.l2_bytes = properties.l2CacheSize;
  return true;
}

std::vector<Duel> duels(const Cell &cell, const std::vector<KernelPair> &pairs,
                        const Options &options) {
  const DeviceInfo device = this_device();
  std::vector<Duel> out;
  const CellData data(cell,
                      set_count(kv_bytes(cell, cell_lengths(cell)), device.l2_bytes, options));
  const AttentionOutputs outputs(slots_of(data.sets), int64_t{cell.batch} * cell.num_qo_heads,
                                 cell.head_dim);
  const Arena arena = outputs.arena(data.stream, *data.q);
  for (const KernelPair &pair : pairs) {
    if (pair.base->family != ASSAY_FAMILY_PAGED) continue;
    CellCalls<assay_paged_params> calls;
    calls.make = [&](int slot, char *at) {
      assay_paged_params p = data.params(slot % data.sets);
      outputs.put(p, slot, at);
      return p;
    };
    calls.banded = [&] { return data.params(0); };
    if (options.judge)
      calls.verify = [&](const assay_paged_params &p, const std::function<void()> &run) {
        return verify_kernel(data, pair.head->name, p, run, options.judge);
      };
    out.push_back(duel(cell.name, pair, arena, calls));
  }
  return out;
}

double empty_launch_host_us() {
  const Stream stream;
  return host_enqueue_us(stream, [&] { enqueue_empty(stream.get()); });
}

double empty_launch_us(const Options &options) {
  const Stream stream;
  return graph_median_us(stream, 64, options.replays, [&](int) { enqueue_empty(stream.get()); });
}

CellResult run_cell(const Cell &cell, const Options &options) {
  return guarded(CellKind::kDecode, cell.name, name_of(cell.kv_dtype), options,
                 [&](CellResult &result, const DeviceInfo &device) {
                   if (options.host_only)
                     run_decode_on_host(cell, result);
                   else
                     run_decode(cell, options, device, result);
                 });
}

} // namespace assay::bench
