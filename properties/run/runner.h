// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "properties/case/case_text.h"
#include "properties/case/shrink.h"
#include "properties/run/registry.h"

namespace assay {

struct PropertyRun;

struct RunnerOptions {
  uint64_t seed = 1;
  int cases = 40;    ///< decided cases per (kernel, property)
  double budget = 0; ///< seconds; > 0 draws until the time is spent instead of `cases`
  int threads = 0;   ///< 0: one per core, 16 at most
  Limits limits = check_limits();
  bool replay_scores = false; ///< T2 too: see Sut::replays_scores
  bool isolate = false;       ///< kernels run in processes of their own (simt)
  ShrinkBudget shrink = {.checks = 1500, .seconds = 20};
  /// Called once a property's first failure is shrunk, long before the run ends; one call at a
  /// time.
  std::function<void(const PropertyRun &)> found;
  /// When it turns true the run ends after the cases in progress.
  const std::atomic<bool> *stop = nullptr;
};

/// A failing case with what it became.
struct Finding {
  uint64_t index = 0; ///< of the draw
  int cases = 0;      ///< RunnerOptions::cases of the shortest run that draws it
  Problem drawn, shrunk;
  CheckResult result; ///< of the shrunk case
  ShrinkStats stats;
};

/// One property on one kernel.
struct PropertyRun {
  const Property *property = nullptr;
  const assay_kernel *kernel = nullptr;
  bool started = false; ///< false: the run was stopped before
  int cases = 0;        ///< decided: passed or failed
  int discarded = 0;
  int unsupported = 0; ///< of those: the kernel said that it cannot run the case
  std::map<std::string, int> unsupported_classes;
  int findings = 0;
  int undecided = 0;
  double ratio_t0 = 0, ratio_t1 = 0, ratio_t2 = 0, ratio_lse = 0;
  uint64_t outputs = 0, no_claim = 0, certified_rows = 0; ///< as in CheckResult, summed
  double seconds = 0;                                     ///< summed over threads
  std::map<std::string, int> classes;                     ///< decided cases of each class
  std::vector<std::string> missing; ///< important classes without a case, unsupported ones aside
  std::vector<Finding> first;       ///< the first failure, shrunk; empty without one
  std::string harness_error;        ///< an exception; the run proves nothing

  /// Nothing was decided, and it is not for a feature that the kernel does not have.
  bool hollow() const {
    return cases == 0 && !(property->about != 0 && unsupported > discarded / 2);
  }
};

struct RunSummary {
  uint64_t seed = 0;
  double seconds = 0;
  std::vector<PropertyRun> runs;
  int cases() const;
  int findings() const;
  int undecided() const;
  uint64_t outputs() const;
  uint64_t certified_rows() const;
  int unstarted() const;   ///< pairs that a stopped run left out
  bool incomplete() const; ///< a class without a case, no case at all, or a harness error
};

struct Progress {
  int done, total; ///< pairs of kernel and property finished
  int cases, findings;
};

/// Runs every property that applies on every kernel. The same options draw the same cases in any
/// number of threads (with a time budget: a prefix of them).
RunSummary run_properties(const std::vector<const assay_kernel *> &kernels,
                          const std::vector<const Property *> &properties,
                          const RunnerOptions &options,
                          const std::function<void(const Progress &)> &progress);

/// Draw number `index` of a property on a kernel: mostly small cases, some large.
Problem draw_case(const Property &property, const assay_kernel &kernel,
                  const RunnerOptions &options, uint64_t index);

/// The check with everything thrown turned into a harness error (`threw` set).
CheckResult checked(const Property &property, const Problem &p, Sut &sut, bool *threw);

} // namespace assay
