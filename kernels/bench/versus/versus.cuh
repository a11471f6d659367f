// SPDX-License-Identifier: Apache-2.0
// What the duels of all families share.
#pragma once

#include "kernels/bench/cell_run.cuh"
#include "kernels/bench/floor.cuh"
#include "kernels/bench/versus/versus.h"

#include <functional>
#include <map>
#include <memory>

namespace assay::bench {

/// Memory of a cell as a duel sees it.
struct Arena {
  const Stream &stream;
  int slots;   ///< calls of a replay: each writes outputs of its own
  void *input; ///< what changes between replays, in place: queries, or states
  uint64_t input_bytes;
  std::function<void(uint64_t seed)> refill; ///< enqueues other values for it
  uint64_t output_bytes;                     ///< all that they may write; a multiple of 16
};

inline DeviceInfo this_device() {
  DeviceInfo device;
  std::string error;
  if (!device_info(device, error)) throw std::runtime_error(error);
  return device;
}

/// Calls of a replay over the sets of a cell, one set after another.
inline int slots_of(int sets) { return std::max(sets, 4); }

/// A call's parameters, all but workspace and plan: the one of a slot, with its part of the
/// outputs.
template <class Params>
using MakeCall = std::function<Params(int slot, char *outputs)>;

/// The calls of a family on a cell.
template <class Params>
struct CellCalls {
  MakeCall<Params> make;
  /// One on the first set, between bands as CheckedOutputs wants them: `run` returns when its
  /// outputs are there.
  std::function<Params()> banded;
  std::function<Verification(const Params &, const std::function<void()> &run)> verify;
};

/// O and LSE of attention, of each slot its own.
class AttentionOutputs {
public:
  AttentionOutputs(int slots, int64_t rows, int head_dim)
      : slots_(slots), o_bytes_(rows * head_dim * 2),
        slot_bytes_((o_bytes_ + rows * 4 + 255) / 256 * 256) {}

  template <class Params>
  void put(Params &p, int slot, char *outputs) const {
    char *at = outputs + slot * slot_bytes_;
    p.out = at;
    p.lse = reinterpret_cast<float *>(at + o_bytes_);
  }

  /// `q`: what changes between replays.
  Arena arena(const Stream &stream, const DeviceArray<uint16_t> &q) const {
    const auto refill = [&](uint64_t seed) { fill_bf16(q.get(), q.size(), seed, stream.get()); };
    return {stream,  slots_,
            q.get(), q.size() * sizeof(uint16_t),
            refill,  static_cast<uint64_t>(slots_ * slot_bytes_)};
  }

private:
  int slots_;
  int64_t o_bytes_, slot_bytes_;
};

/// Calls of one kernel of a table on a cell: workspace and plans of its own, one of each a slot, as
/// a plan may be about pages.
template <class Params>
class TableCalls {
public:
  TableCalls(const assay_kernel &kernel, int slots, const MakeCall<Params> &make, char *outputs)
      : kernel_(kernel) {
    for (int slot = 0; slot < slots && refusal_.empty(); ++slot) {
      Params p = make(slot, outputs);
      if (!allocate(p)) return;
      calls_.push_back(p);
    }
    if (kernel.supports(&calls_[0]) != ASSAY_OK) refuse();
  }

  /// Why the kernel does not take the cell; empty: it does.
  const std::string &refusal() const { return refusal_; }

  const Params &params(int slot) const { return calls_[static_cast<size_t>(slot)]; }

  void run(int slot) const {
    if (kernel_.run(&calls_[static_cast<size_t>(slot)]) != ASSAY_OK)
      throw std::runtime_error(std::string(kernel_.name) + ": " + kernel_.last_error());
  }

private:
  bool refuse() {
    const char *text = kernel_.last_error();
    refusal_ = text == nullptr || *text == '\0' ? "refused without a word" : text;
    return false;
  }
  void *keep(uint64_t bytes) {
    memory_.push_back(std::make_unique<DeviceArray<char>>(bytes));
    return memory_.back()->get();
  }
  bool allocate(Params &p) {
    uint64_t bytes = 0;
    if constexpr (requires { p.workspace; }) {
      if (kernel_.workspace_size != nullptr) {
        if (kernel_.workspace_size(&p, &bytes) != ASSAY_OK) return refuse();
        p.workspace = keep(bytes);
        p.workspace_bytes = bytes;
      }
    }
    if constexpr (requires { p.plan; }) {
      if (kernel_.plan != nullptr) {
        if (kernel_.plan_size(&p, &bytes) != ASSAY_OK) return refuse();
        p.plan = keep(bytes);
        p.plan_bytes = bytes;
        if (kernel_.plan(&p) != ASSAY_OK) return refuse();
      }
    }
    return true;
  }

  const assay_kernel &kernel_;
  std::vector<Params> calls_;
  std::vector<std::unique_ptr<DeviceArray<char>>> memory_;
  std::string refusal_;
};

/// One kernel with outputs of its own.
class TimedKernel {
public:
  virtual ~TimedKernel() = default;
  /// Enqueues the call of a slot, which writes its part of `outputs`; every address has calls of
  /// its own, made when it is first named.
  virtual void run(int slot, char *outputs) = 0;
};

template <class Params>
class TimedTable : public TimedKernel {
public:
  TimedTable(const assay_kernel &kernel, const Arena &arena, const MakeCall<Params> &make)
      : kernel_(kernel), arena_(arena), make_(make) {}
  void run(int slot, char *outputs) override { calls(outputs).run(slot); }
  const TableCalls<Params> &calls(char *outputs) {
    auto &at = calls_[outputs];
    if (!at) at = std::make_unique<TableCalls<Params>>(kernel_, arena_.slots, make_, outputs);
    return *at;
  }

private:
  const assay_kernel &kernel_;
  const Arena &arena_;
  const MakeCall<Params> &make_;
  std::map<char *, std::unique_ptr<TableCalls<Params>>> calls_;
};

/// The rounds, over outputs at `outputs`; fills times and what was wrong.
void run_rounds(const Arena &arena, const KernelPair &pair, TimedKernel &base, TimedKernel &head,
                char *outputs, Duel &out);

/// The verdict of the judges on a kernel.
template <class Params>
std::vector<std::string> judged(const assay_kernel &kernel, const Arena &arena,
                                const CellCalls<Params> &cell) {
  const TableCalls<Params> call(
      kernel, 1, [&](int, char *) { return cell.banded(); }, nullptr);
  if (!call.refusal().empty()) return {call.refusal()};
  return cell
      .verify(call.params(0),
              [&] {
                call.run(0);
                ASSAY_BENCH_CHECK(cudaStreamSynchronize(arena.stream.get()));
              })
      .findings;
}

/// One pair of Params' family on a cell.
template <class Params>
Duel duel(const std::string &name, const KernelPair &pair, const Arena &arena,
          const CellCalls<Params> &cell) {
  Duel out;
  out.cell = name;
  out.kernel = pair.base->name;
  const DeviceArray<char> outputs(arena.output_bytes);
  TimedTable<Params> base(*pair.base, arena, cell.make), head(*pair.head, arena, cell.make);
  const std::string &of_base = base.calls(outputs.get()).refusal(),
                    &of_head = head.calls(outputs.get()).refusal();
  out.skipped = of_base.empty() ? of_head : of_base;
  out.head_refuses = of_base.empty() && !of_head.empty();
  if (!out.skipped.empty()) return out;
  run_rounds(arena, pair, base, head, outputs.get(), out);
  if (!out.same_bits && cell.verify) out.findings = judged(*pair.head, arena, cell);
  return out;
}

} // namespace assay::bench
