// SPDX-License-Identifier: Apache-2.0
// Which check notices which wrong kernel, and how often: the usual acceptance rules beside ours.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/abi/plugin.h"

namespace assay {

/// The usual rules look at O of one request as one tensor, ours at every element.
enum KillColumn {
  kClose2,  ///< every element within 1e-2, absolute plus relative
  kClose3,  ///< within 1e-3
  kMostly,  ///< 98 % of the elements within 1e-2, absolute or relative
  kTwice,   ///< largest error at most twice that of a plain low-precision run
  kTier0,   ///< oracle, T0: any order of the keys
  kTier1,   ///< T1: with the rounding of P replayed
  kTier2,   ///< T2: with the scores replayed bit by bit
  kLse,     ///< oracle, LSE: from any order, and with the scores replayed where T2 applies
  kDyadic,  ///< property dyadic_exact, on inputs of its own
  kAlgebra, ///< property algebra_exact, on the same shapes with exact numbers
  kHazards, ///< the executor stopped, or memory was written that must not be
  kAnyOfOurs,
  kKillColumns
};
inline constexpr std::array<const char *, kKillColumns> kKillColumnNames = {
    "1e-2", "1e-3", "98%", "2x", "T0", "T1", "T2", "LSE", "dyadic", "algebra", "hazards", "all"};

/// A kernel to judge; `activate(id)` switches to it, id 0 is the correct kernel.
struct KillSubject {
  int id = 0;
  std::string name, why;
  const assay_kernel *kernel = nullptr;
};

struct KillOptions {
  int runs = 20, keys = 509, splits = 2, threads = 1;
  uint64_t seed = 1;
  bool replay_scores = true; ///< false: as for a kernel that declares no bit-accurate MMA, no T2
};

struct KillRow {
  KillSubject subject;
  int runs = 0;
  /// Runs that a column could judge and those it rejected. A column cannot judge a run that stopped
  /// at a hazard; T1, T2 and dyadic do not exist for merges.
  std::array<int, kKillColumns> judged{}, killed{};
};

/// Every subject on the same N(0,1) inputs, `runs` of them. `activate` is called on the thread that
/// then runs the kernel. The result depends on the options but `threads`.
std::vector<KillRow> kill_matrix(const std::vector<KillSubject> &subjects,
                                 const std::function<void(int id)> &activate,
                                 const KillOptions &options);

} // namespace assay
