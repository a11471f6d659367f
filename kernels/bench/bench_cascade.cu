// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cell_run.cuh"
#include "kernels/bench/cells/cascade_layout.h"
#include "kernels/bench/floor.cuh"
#include "kernels/bench/host_time.cuh"
#include "kernels/bench/versus/versus.cuh"

#include <memory>

namespace assay::bench {
namespace {

constexpr const char *kKernel = "cascade_attention", *kTree = "tree_attention",
                     *kFlat = "paged_attention_v2";

/// Device memory of a cell: its sets, one query batch, one workspace.
struct CascadeData {
  CascadeLayout layout;
  DeviceArray<char> pool;
  DeviceArray<int32_t> integers;
  DeviceArray<uint16_t> q, o;
  DeviceArray<float> lse;
  std::unique_ptr<DeviceArray<char>> workspace;
  Stream stream;

  CascadeData(const CascadeCell &cell, int sets)
      : layout(cell, sets), pool(layout.pool_bytes()), integers(layout.integers()),
        q(layout.query_rows() * cell.head_dim),
        o(layout.query_rows() * cell.head_dim + 2 * kBandBytes / sizeof(uint16_t)),
        lse(layout.query_rows() + 2 * kBandBytes / sizeof(float)) {
    fill_cache(pool.get(), pool.size(), cell.kv_dtype, stream.get());
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
    p.out = o.get() + kBandBytes / sizeof(uint16_t); // a band on either side
    p.lse = lse.get() + kBandBytes / sizeof(float);
    p.levels = levels.data();
    p.stream = stream.get();
    if (workspace) {
      p.workspace = workspace->get();
      p.workspace_bytes = workspace->size();
    }
    return p;
  }

  /// A call of paged attention on a set's pages, without workspace and plan.
  assay_paged_params flat_params(int set) const {
    assay_paged_params p = layout.flat_params(ASSAY_TARGET_CUDA, set, pool.get(), integers.get());
    p.q = q.get();
    p.out = o.get() + kBandBytes / sizeof(uint16_t);
    p.lse = lse.get() + kBandBytes / sizeof(float);
    p.stream = stream.get();
    return p;
  }

  void run(int set) const {
    const auto levels = levels_of(set);
    const assay_cascade_params p = params(levels);
    check_status(assay_cascade_attention(&p), kKernel);
  }
};

/// A call of paged attention on the first set's pages, and what it wrote.
Verification verify_flat(const CascadeData &data, const char *kernel,
                         const assay_paged_params &params, const std::function<void()> &run,
                         const Judge &judge) {
  TimedCall call;
  call.kernel = kernel;
  call.params = params;
  const std::vector<int32_t> &integers = data.layout.integers();
  const assay_paged_params host =
      data.layout.flat_params(ASSAY_TARGET_CUDA, 0, data.pool.get(), integers.data());
  call.seq_lens.assign(host.kv.seq_lens, host.kv.seq_lens + host.batch);
  call.page_table.assign(host.kv.page_table,
                         host.kv.page_table + host.batch * host.kv.page_table_stride);
  call.run = run;
  return verify_call(call, device_memory(), judge);
}

/// A planned kernel that takes a page table for each request.
struct FlatKernel {
  using Call = assay_status (*)(const assay_paged_params *);
  using Size = assay_status (*)(const assay_paged_params *, uint64_t *);
  const char *name;
  Call run, supports, plan, plan_lengths;
  Size workspace_size, plan_size;
};
constexpr FlatKernel kFlatKernel = {kFlat,
                                    &assay_paged_attention_v2,
                                    &assay_paged_attention_v2_supports,
                                    &assay_paged_attention_v2_plan,
                                    &assay_paged_attention_v2_plan,
                                    &assay_paged_attention_v2_workspace_size,
                                    &assay_paged_attention_v2_plan_size};
constexpr FlatKernel kTreeKernel = {kTree,
                                    &assay_tree_attention,
                                    &assay_tree_attention_supports,
                                    &assay_tree_attention_plan,
                                    &assay_tree_attention_plan_lengths,
                                    &assay_tree_attention_workspace_size,
                                    &assay_tree_attention_plan_size};

/// Calls of paged attention on the pages of a cascade: with num_splits `splits`, one plan a set.
class FlatCalls {
public:
  FlatCalls(const CascadeData &data, const FlatKernel &kernel, int splits)
      : data_(data), kernel_(kernel), splits_(splits) {
    const assay_paged_params p = params(0);
    uint64_t bytes = 0;
    check_status(kernel.workspace_size(&p, &bytes), "workspace_size");
    workspace_ = std::make_unique<DeviceArray<char>>(bytes);
    check_status(kernel.plan_size(&p, &bytes), "plan_size");
    for (int set = 0; set < data.layout.sets(); ++set)
      plans_.push_back(std::make_unique<DeviceArray<char>>(bytes));
    for (int set = 0; set < data.layout.sets(); ++set)
      plan(set, kernel.plan);
  }

  assay_paged_params params(int set) const {
    assay_paged_params p = data_.flat_params(set);
    p.num_splits = splits_;
    if (workspace_) {
      p.workspace = workspace_->get();
      p.workspace_bytes = workspace_->size();
    }
    if (!plans_.empty()) {
      p.plan = plans_[set]->get();
      p.plan_bytes = plans_[set]->size();
    }
    return p;
  }

  void plan(int set, FlatKernel::Call planner) const {
    const assay_paged_params p = params(set);
    check_status(planner(&p), "plan");
  }
  void run(int set) const {
    const assay_paged_params p = params(set);
    check_status(kernel_.run(&p), kernel_.name);
  }
  void time_on_host(Timing &out) const {
    time_host(data_.stream, kernel_.name, params(0), kernel_.run, kernel_.supports, out);
  }

  Verification verify(const Judge &judge) const {
    return verify_flat(
        data_, kernel_.name, params(0),
        [&] {
          run(0);
          ASSAY_BENCH_CHECK(cudaStreamSynchronize(data_.stream.get()));
        },
        judge);
  }

private:
  const CascadeData &data_;
  const FlatKernel &kernel_;
  int splits_;
  std::unique_ptr<DeviceArray<char>> workspace_;
  std::vector<std::unique_ptr<DeviceArray<char>>> plans_;
};

/// A call on the first set, and what it wrote.
Verification verify_levels(const CascadeData &data, const char *kernel,
                           const assay_cascade_params &params, const std::function<void()> &run,
                           const Judge &judge) {
  TimedCascade call;
  call.kernel = kernel;
  call.params = params;
  call.levels = data.layout.levels(0, data.pool.get(), data.layout.integers().data());
  call.run = run;
  return verify_cascade(call, device_memory(), judge);
}

/// Times the same keys with a page table per request: tree_attention finds shared ones, and v2
/// reads them for each request.
void run_flat(const CascadeData &data, const Options &options, CellResult &result) {
  const int sets = data.layout.sets();
  const auto measure = [&](const std::string &name, const FlatCalls &calls) {
    Timing &timing = result.kernels[name];
    calls.time_on_host(timing);
    if (options.host_only) return;
    timing.us = graph_median_us(data.stream, std::max(sets, 4), options.replays,
                                [&](int i) { calls.run(i % sets); });
  };
  const FlatCalls flat(data, kFlatKernel, 0);
  measure(kFlat, flat);
  const FlatCalls tree(data, kTreeKernel, 0);
  measure(kTree, tree);
  if (options.host_only) return;
  const auto plan_us = [&](FlatKernel::Call planner) {
    return graph_median_us(data.stream, std::max(sets, 4), options.replays,
                           [&](int i) { tree.plan(i % sets, planner); });
  };
  result.plan_us = plan_us(kTreeKernel.plan);
  result.plan_lengths_us = plan_us(kTreeKernel.plan_lengths);
  if (options.judge) {
    result.verified[kFlat] = flat.verify(options.judge);
    result.verified[kTree] = tree.verify(options.judge);
  }
  for (const int splits : options.tree_splits)
    measure(std::string(kTree) + " " + std::to_string(splits),
            FlatCalls(data, kTreeKernel, splits));
}

/// cascade_attention, which takes no fp8 cache.
void run_levels(const CascadeData &data, const Options &options, CellResult &result) {
  const int sets = data.layout.sets();
  const auto levels = data.levels_of(0);
  Timing &timing = result.kernels[kKernel];
  // What is wrong with the call shows here, not in a capture.
  time_host(data.stream, kKernel, data.params(levels), &assay_cascade_attention,
            &assay_cascade_attention_supports, timing);
  if (options.host_only) return;
  timing.us = graph_median_us(data.stream, std::max(sets, 4), options.replays,
                              [&](int i) { data.run(i % sets); });
  if (!options.judge) return;
  const auto run = [&] {
    data.run(0);
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(data.stream.get()));
  };
  result.verified[kKernel] = verify_levels(data, kKernel, data.params(levels), run, options.judge);
}

void run_cascade(const CascadeCell &cell, const Options &options, const DeviceInfo &device,
                 CellResult &result) {
  result.bytes = kv_bytes(cell);
  result.flops = flops(cell);
  const int sets = options.host_only ? 1 : set_count(result.bytes, device.l2_bytes, options);
  const CascadeData data(cell, sets);
  const FloorSets floor = {data.pool.get(), result.bytes, sets};
  if (!options.host_only)
    result.floor.us =
        read_floor_us(floor, data.stream, device.multiprocessors, options.replays, false);
  if (cell.kv_dtype == KvDtype::kBf16) run_levels(data, options, result);
  if (data.layout.has_flat()) run_flat(data, options, result);
}

} // namespace

CellResult run_cell(const CascadeCell &cell, const Options &options) {
  return guarded(CellKind::kCascade, cell.name, name_of(cell.kv_dtype), options,
                 [&](CellResult &result, const DeviceInfo &device) {
                   run_cascade(cell, options, device, result);
                 });
}

std::vector<Duel> duels(const CascadeCell &cell, const std::vector<KernelPair> &pairs,
                        const Options &options) {
  const DeviceInfo device = this_device();
  std::vector<Duel> out;
  const CascadeData data(cell, set_count(kv_bytes(cell), device.l2_bytes, options));
  const int sets = data.layout.sets();
  const AttentionOutputs outputs(slots_of(sets), data.layout.query_rows(), cell.head_dim);
  const Arena arena = outputs.arena(data.stream, data.q);
  std::vector<std::vector<assay_cascade_level>> levels; // that calls point to
  for (int set = 0; set < sets; ++set)
    levels.push_back(data.levels_of(set));
  CellCalls<assay_cascade_params> given;
  given.make = [&](int slot, char *at) {
    assay_cascade_params p = data.params(levels[slot % sets]);
    p.workspace = nullptr;
    outputs.put(p, slot, at);
    return p;
  };
  given.banded = [&] { return data.params(levels[0]); };
  CellCalls<assay_paged_params> flat;
  flat.make = [&](int slot, char *at) {
    assay_paged_params p = data.flat_params(slot % sets);
    outputs.put(p, slot, at);
    return p;
  };
  flat.banded = [&] { return data.flat_params(0); };
  for (const KernelPair &pair : pairs) {
    if (options.judge) {
      given.verify = [&](const assay_cascade_params &p, const std::function<void()> &run) {
        return verify_levels(data, pair.head->name, p, run, options.judge);
      };
      flat.verify = [&](const assay_paged_params &p, const std::function<void()> &run) {
        return verify_flat(data, pair.head->name, p, run, options.judge);
      };
    }
    if (pair.base->family == ASSAY_FAMILY_CASCADE && cell.kv_dtype == KvDtype::kBf16)
      out.push_back(duel(cell.name, pair, arena, given));
    if (pair.base->family == ASSAY_FAMILY_PAGED && data.layout.has_flat())
      out.push_back(duel(cell.name, pair, arena, flat));
  }
  return out;
}

} // namespace assay::bench
