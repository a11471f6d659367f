// SPDX-License-Identifier: Apache-2.0
// Two libraries' kernels of the same name side by side on the current CUDA device: is head slower?
//
// Method: as bench.h times a kernel, in rounds. A round replays three graphs, that of base, that of
// head and that of base again, in an order that changes from round to round so that each stands
// everywhere equally often (verdict.h says what is made of the times). Nothing is timed that was
// not right: before every replay the queries change and the outputs are poisoned, and after it
// every byte of every output must be what the same kernel wrote before the rounds, in other memory
// of its own. A kernel that remembers what it answered, or does half its work when it is timed,
// shows.
#pragma once

#include <cstdio>

#include <nlohmann/json_fwd.hpp>

#include "kernels/abi/plugin.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/versus/verdict.h"

namespace assay::bench {

/// Kernels of one name, family and the cuda target.
struct KernelPair {
  const assay_kernel *base, *head;
};

/// One pair on one cell.
struct Duel {
  std::string cell, kernel;
  std::string skipped;       ///< not empty: why it was not timed; of the first side that refused
  bool head_refuses = false; ///< and base does not
  Arms us;
  bool same_bits = true; ///< what both write
  uint64_t wrong = 0;    ///< replays of head after which an output was not what it should be
  uint64_t base_wrong = 0;
  std::vector<std::string> findings; ///< what the judges found in head
};

std::vector<Duel> duels(const Cell &cell, const std::vector<KernelPair> &pairs, const Options &);
std::vector<Duel> duels(const CascadeCell &cell, const std::vector<KernelPair> &pairs,
                        const Options &);
std::vector<Duel> duels(const MergeCell &cell, const std::vector<KernelPair> &pairs,
                        const Options &);

/// Runs all pairs on the cells of their family, prints a line for each and fills `document`:
/// {"device", "driver", "date", "duels": [{"cell", "kernel", "base_us", "head_us", "ratio",
/// "control", "p", "speed", "same_bits", "wrong", "base_wrong", "findings"} or {"cell", "kernel",
/// "skipped"}]}. Returns 0, 1 where a timed output was wrong, 3 when there is no device, 4 when a
/// cell failed.
int versus_and_report(const CellSet &cells, const std::vector<KernelPair> &pairs,
                      const Options &options, std::FILE *text, nlohmann::json &document);

} // namespace assay::bench
