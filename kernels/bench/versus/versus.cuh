// SPDX-License-Identifier: Apache-2.0
// What the duels of all families share.
#pragma once

#include "kernels/bench/cell_run.cuh"
#include "kernels/bench/floor.cuh"
#include "kernels/bench/versus/versus.h"

#include <functional>
#include <memory>

namespace assay::bench {

/// Memory of a cell as a duel sees it.
struct Arena {
  const Stream &stream;
  int sets;
  void *input; ///< what changes between replays, in place: queries, or states
  uint64_t input_bytes;
  std::function<void(uint64_t seed)> refill; ///< enqueues other values for it
  char *outputs;                             ///< of all sets: all that a call may write
  uint64_t output_bytes;
};

/// O and LSE of attention, of each set its own.
class AttentionOutputs {
public:
  AttentionOutputs(int sets, int64_t rows, int head_dim)
      : sets_(sets), o_bytes_(rows * head_dim * 2),
        set_bytes_((o_bytes_ + rows * 4 + 255) / 256 * 256), memory_(sets * set_bytes_) {}

  /// Where a call on a set writes.
  template <class Params>
  void put(Params &p, int set) const {
    char *at = memory_.get() + set * set_bytes_;
    p.o = at;
    p.lse = reinterpret_cast<float *>(at + o_bytes_);
  }

  /// `q`: what changes between replays.
  Arena arena(const Stream &stream, const DeviceArray<uint16_t> &q) const {
    return {stream,
            sets_,
            q.get(),
            q.size() * sizeof(uint16_t),
            [&](uint64_t seed) { fill_bf16(q.get(), q.size(), seed, stream.get()); },
            memory_.get(),
            memory_.size()};
  }

private:
  int sets_;
  int64_t o_bytes_, set_bytes_;
  DeviceArray<char> memory_;
};

/// Calls of one kernel of a table on the sets of a cell: workspace and plans of its own, one of
/// each a set, as a plan may be about pages.
template <class Params>
class TableCalls {
public:
  /// make(set): a call's parameters, all but workspace and plan.
  TableCalls(const assay_kernel &kernel, int sets, const std::function<Params(int set)> &make)
      : kernel_(kernel) {
    for (int set = 0; set < sets && refusal_.empty(); ++set) {
      Params p = make(set);
      if (!allocate(p)) return;
      calls_.push_back(p);
    }
    if (kernel.supports(&calls_[0]) != ASSAY_OK) refuse();
  }

  /// Why the kernel does not take the cell; empty: it does.
  const std::string &refusal() const { return refusal_; }

  void run(int set) const {
    if (kernel_.run(&calls_[static_cast<size_t>(set)]) != ASSAY_OK)
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

/// A kernel on the sets of an arena.
using RunSet = std::function<void(int set)>;

/// The rounds; fills times and what was wrong.
void run_rounds(const Arena &arena, const KernelPair &pair, const RunSet &base, const RunSet &head,
                Duel &out);

/// One pair of Params' family on a cell.
template <class Params>
Duel duel(const std::string &cell, const KernelPair &pair, const Arena &arena,
          const std::function<Params(int set)> &make) {
  Duel out;
  out.cell = cell;
  out.kernel = pair.base->name;
  const TableCalls<Params> base(*pair.base, arena.sets, make), head(*pair.head, arena.sets, make);
  out.skipped = base.refusal().empty() ? head.refusal() : base.refusal();
  out.head_refuses = base.refusal().empty() && !head.refusal().empty();
  if (out.skipped.empty())
    run_rounds(
        arena, pair, [&](int set) { base.run(set); }, [&](int set) { head.run(set); }, out);
  return out;
}

} // namespace assay::bench
