// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "properties/case/case_text.h"
#include "properties/case/envelope.h"
#include "properties/case/shrink.h"
#include "properties/run/checked.h"
#include "properties/run/run_summary.h"
#include "properties/sut/assumed.h"

namespace assay {

struct RunnerOptions {
  uint64_t seed = 1;
  int cases = 40;    ///< decided cases per (kernel, property), times the property's weight
  double budget = 0; ///< seconds; > 0 draws until the time is spent instead of `cases`
  int threads = 0;   ///< 0: one per core, 16 at most
  Limits limits = check_limits();
  bool replay_scores = false; ///< T2 too: see Sut::replays_scores
  bool isolate = false;       ///< kernels run in processes of their own
  Assumed assumed;            ///< what kernels are not asked
  /// What kernels run in; null: what their target and `isolate` say. Called from every thread.
  std::function<std::unique_ptr<Sut>(const assay_kernel &)> make_sut;
  /// Where kernels are narrow on purpose: cases are drawn in these, and classes that lie outside
  /// are reported and not required. A kernel that is not here takes every case.
  std::map<const assay_kernel *, Envelope> envelopes;
  ShrinkBudget shrink = {.checks = 1500, .seconds = 20};
  /// Called once a property's first failure is shrunk, long before the run ends; one call at a
  /// time.
  std::function<void(const PropertyRun &)> found;
  /// Called once a kernel has not returned in time, before that case is shrunk: which takes as long
  /// for every smaller case that hangs. Of each kernel once.
  std::function<void(const PropertyRun &, const Problem &, const CheckResult &)> hung;
  /// Not null: whether a case with a refused call counts as decided. The kernel stands for one that
  /// takes it, and the others are to be the cases of that one's run.
  std::function<bool(const assay_kernel &, const RefusedCall &)> counted_refusal;
  /// Called on every thread that checks, before it begins.
  std::function<void()> on_thread;
  /// When it turns true the run ends after the cases in progress.
  const std::atomic<bool> *stop = nullptr;
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

} // namespace assay
