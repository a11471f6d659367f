// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cell_run.cuh"
#include "kernels/bench/cells/cascade_layout.h"
#include "kernels/bench/floor.cuh"

#include <memory>

namespace assay::bench {
namespace {

constexpr const char *kKernel = "cascade_attention";

/// Device memory of a cell: its sets, one query batch, one workspace.
struct CascadeData {
  CascadeLayout layout;
  DeviceArray<uint16_t> pool;
  DeviceArray<int32_t> integers;
  DeviceArray<uint16_t> q, o;
  DeviceArray<float> lse;
  std::unique_ptr<DeviceArray<char>> workspace;
  Stream stream;

  CascadeData(const CascadeCell &cell, int sets)
      : layout(cell, sets), pool(layout.pool_elements()), integers(layout.integers()),
        q(layout.query_rows() * cell.head_dim),
        o(layout.query_rows() * cell.head_dim + 2 * kBandBytes / sizeof(uint16_t)),
        lse(layout.query_rows() + 2 * kBandBytes / sizeof(float)) {
    fill_bf16(pool.get(), pool.size(), 1, stream.get());
    fill_bf16(q.get(), q.size(), 2, stream.get());
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(stream.get()));
    const auto levels = levels_of(0);
    assay_cascade_params p = params(levels);
    uint64_t bytes = 0;
    check_status(assay_cascade_attention_workspace_size(&p, &bytes), "workspace_size");
    workspace = std::make_unique<DeviceArray<char>>(bytes);
  }

  std::vector<assay_cascade_level> levels_of(int set) const {
    return layout.levels(set, pool.get(), integers.get());
  }

  /// `levels` must outlive the parameters.
  assay_cascade_params params(const std::vector<assay_cascade_level> &levels) const {
    assay_cascade_params p = layout.params(ASSAY_TARGET_CUDA);
    p.q = q.get();
    p.o = o.get() + kBandBytes / sizeof(uint16_t); // a band on either side
    p.lse = lse.get() + kBandBytes / sizeof(float);
    p.levels = levels.data();
    p.stream = stream.get();
    if (workspace) {
      p.workspace = workspace->get();
      p.workspace_bytes = workspace->size();
    }
    return p;
  }

  void run(int set) const {
    const auto levels = levels_of(set);
    const assay_cascade_params p = params(levels);
    check_status(assay_cascade_attention(&p), kKernel);
  }
};

/// One call on the first set and what it wrote.
Verification verify_kernel(const CascadeData &data, const CascadeJudge &judge) {
  const auto levels = data.levels_of(0);
  TimedCascade call;
  call.kernel = kKernel;
  call.params = data.params(levels);
  call.levels = data.layout.levels(0, data.pool.get(), data.layout.integers().data());
  call.run = [&] {
    data.run(0);
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(data.stream.get()));
  };
  return verify_cascade(call, device_memory(), judge);
}

void run_cascade(const CascadeCell &cell, const Options &options, const DeviceInfo &device,
                 CellResult &result) {
  result.bytes = kv_bytes(cell);
  result.flops = flops(cell);
  const int sets = set_count(result.bytes, device.l2_bytes, options);
  const CascadeData data(cell, sets);
  const FloorSets floor = {reinterpret_cast<const char *>(data.pool.get()), result.bytes, sets};
  result.floor.us =
      read_floor_us(floor, data.stream, device.multiprocessors, options.replays, false);
  data.run(0); // what is wrong with the call shows here, not in a capture
  ASSAY_BENCH_CHECK(cudaStreamSynchronize(data.stream.get()));
  result.kernels[kKernel].us = graph_median_us(data.stream, std::max(sets, 4), options.replays,
                                               [&](int i) { data.run(i % sets); });
  if (options.judges) result.verified[kKernel] = verify_kernel(data, options.judges.cascade);
}

} // namespace

CellResult run_cell(const CascadeCell &cell, const Options &options) {
  return guarded(CellKind::kCascade, cell.name, name_of(KvDtype::kBf16),
                 [&](CellResult &result, const DeviceInfo &device) {
                   run_cascade(cell, options, device, result);
                 });
}

} // namespace assay::bench
