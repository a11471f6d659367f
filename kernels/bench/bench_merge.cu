// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cell_run.cuh"
#include "kernels/bench/cells/merge_layout.h"
#include "kernels/bench/floor.cuh"
#include "kernels/bench/host_time.cuh"
#include "kernels/bench/versus/versus.cuh"

#include <limits>

namespace assay::bench {
namespace {

/// Device memory of a cell: inputs of all sets, then outputs.
struct MergeData {
  MergeLayout layout;
  int sets;
  DeviceArray<char> in, out;
  Stream stream;

  MergeData(const MergeCell &cell, int num_sets)
      : layout(cell), sets(num_sets), in(sets * layout.in_bytes()), out(sets * layout.out_bytes()) {
    // An LSE's upper half is such a number too, so it lies between -1 and 1.
    fill_bf16(reinterpret_cast<uint16_t *>(in.get()), in.size() / sizeof(uint16_t), 1,
              stream.get());
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(stream.get()));
  }

  char *in_of(int set) const { return in.get() + set * layout.in_bytes(); }
  char *out_of(int set) const { return out.get() + set * layout.out_bytes(); }

  assay_merge_state_params state(int set) const { return streamed(state_params(call(set))); }
  assay_merge_states_params states(int set) const { return streamed(states_params(call(set))); }

  void run(MergeOp op, int set) const {
    if (op == MergeOp::kState) {
      const assay_merge_state_params p = state(set);
      check_status(assay_merge_state(&p), name_of(op));
    } else {
      const assay_merge_states_params p = states(set);
      check_status(assay_merge_states(&p), name_of(op));
    }
  }

  void time_on_host(MergeOp op, Timing &out) const {
    if (op == MergeOp::kState)
      time_host(stream, name_of(op), state(0), &assay_merge_state, &assay_merge_state_supports,
                out);
    else
      time_host(stream, name_of(op), states(0), &assay_merge_states, &assay_merge_states_supports,
                out);
  }

private:
  TimedMerge call(int set) const { return layout.call(ASSAY_TARGET_CUDA, in_of(set), out_of(set)); }
  template <class Params>
  Params streamed(Params p) const {
    p.stream = stream.get();
    return p;
  }
};

/// The best of the plain kernels that read and write what a call does. A row here is O and LSE of a
/// row of all heads; merge_state has each of its inputs in one piece, as one long row.
double plain_floor_us(const MergeCell &cell, const MergeData &data, int replays) {
  const auto vectors = static_cast<uint32_t>(written_bytes(cell) / sizeof(uint4));
  const auto states = static_cast<uint32_t>(cell.states);
  const bool pairs = cell.op == MergeOp::kState;
  const MergeFloor merge = {pairs ? 1u : cell.rows, states, pairs ? vectors : vectors / cell.rows};
  DeviceArray<uint32_t> sink(1);
  double best = std::numeric_limits<double>::infinity();
  for (const MergeFloorShape &shape : kMergeFloorShapes)
    for (uint32_t parts = 1;
         parts == 1 || (parts <= states && uint64_t{parts} * vectors < 1u << 30); parts *= 2)
      best =
          std::min(best, graph_median_us(data.stream, std::max(data.sets, 4), replays, [&](int i) {
                     enqueue_merge_floor(shape, merge, parts, data.in_of(i % data.sets),
                                         data.out_of(i % data.sets), sink.get(), data.stream.get());
                   }));
  return best;
}

/// A call on the first set, and what it wrote.
Verification verify_kernel(const MergeData &data, const char *kernel,
                           const std::function<void()> &run, const Judge &judge) {
  TimedMerge call = data.layout.call(ASSAY_TARGET_CUDA, data.in_of(0), data.out_of(0));
  call.kernel = kernel;
  call.run = run;
  return verify_merge(call, device_memory(), judge);
}

void run_merge(const MergeCell &cell, const Options &options, const DeviceInfo &device,
               CellResult &result) {
  result.bytes = read_bytes(cell) + written_bytes(cell);
  const int sets = options.host_only ? 1 : set_count(result.bytes, device.l2_bytes, options);
  const MergeData data(cell, sets);
  const char *kernel = name_of(cell.op);
  // What is wrong with the call shows here, not in a capture.
  data.time_on_host(cell.op, result.kernels[kernel]);
  if (options.host_only) return;
  const FloorSets floor = {data.in.get(), read_bytes(cell), sets};
  result.floor.us =
      read_floor_us(floor, data.stream, device.multiprocessors, options.replays, false);
  result.plain_us = plain_floor_us(cell, data, options.replays);
  result.kernels[kernel].us = graph_median_us(data.stream, std::max(sets, 4), options.replays,
                                              [&](int i) { data.run(cell.op, i % sets); });
  if (!options.judge) return;
  const auto run = [&] {
    data.run(cell.op, 0);
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(data.stream.get()));
  };
  result.verified[kernel] = verify_kernel(data, kernel, run, options.judge);
}

} // namespace

CellResult run_cell(const MergeCell &cell, const Options &options) {
  return guarded(CellKind::kMerge, cell.name, name_of(KvDtype::kBf16), options,
                 [&](CellResult &result, const DeviceInfo &device) {
                   run_merge(cell, options, device, result);
                 });
}

std::vector<Duel> duels(const MergeCell &cell, const std::vector<KernelPair> &pairs,
                        const Options &options) {
  const DeviceInfo device = this_device();
  std::vector<Duel> out;
  const uint64_t bytes = read_bytes(cell) + written_bytes(cell);
  const MergeData data(cell, set_count(bytes, device.l2_bytes, options));
  constexpr uint64_t kChanged = 4 << 20; // changed bytes of the first set's states
  const uint64_t changed = std::min(data.in.size(), kChanged);
  const auto refill = [&](uint64_t seed) {
    fill_bf16(reinterpret_cast<uint16_t *>(data.in.get()), changed / sizeof(uint16_t), seed,
              data.stream.get());
  };
  const int slots = slots_of(data.sets);
  const Arena arena{data.stream, slots,  data.in.get(),
                    changed,     refill, slots * data.layout.out_bytes()};
  const auto run_pair = [&](const KernelPair &pair, auto params_of) {
    using Params = decltype(params_of(TimedMerge{}));
    CellCalls<Params> calls;
    calls.make = [&](int slot, char *outputs) {
      Params p = params_of(data.layout.call(ASSAY_TARGET_CUDA, data.in_of(slot % data.sets),
                                            outputs + slot * data.layout.out_bytes()));
      p.stream = data.stream.get();
      return p;
    };
    calls.banded = [&] { return calls.make(0, data.out.get()); };
    if (options.judge)
      calls.verify = [&](const Params &, const std::function<void()> &run) {
        return verify_kernel(data, pair.head->name, run, options.judge);
      };
    out.push_back(duel(cell.name, pair, arena, calls));
  };
  for (const KernelPair &pair : pairs) {
    if (pair.base->family == ASSAY_FAMILY_MERGE_STATE && cell.op == MergeOp::kState)
      run_pair(pair, state_params);
    if (pair.base->family == ASSAY_FAMILY_MERGE_STATES && cell.op == MergeOp::kStates)
      run_pair(pair, states_params);
  }
  return out;
}

} // namespace assay::bench
