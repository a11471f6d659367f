// SPDX-License-Identifier: Apache-2.0
// What a run of properties found, and what it did not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "properties/case/shrink.h"
#include "properties/run/reached.h"
#include "properties/run/registry.h"

namespace assay {

/// A failing case with what it became.
struct Finding {
  uint64_t index = 0; ///< of the draw
  int cases = 0;      ///< RunnerOptions::cases of the shortest run that draws it
  Problem drawn, shrunk;
  CheckResult result; ///< of the shrunk case
  ShrinkStats stats;
  /// The case alone, in a new process, does not fail: calls before it are needed.
  bool after_others = false;
  /// The calls before it that suffice, shrunk as the case is. Empty: none were found, nothing is
  /// shrunk, and only drawing the case again reproduces it.
  std::vector<Problem> before = {};
  std::string shape = {}; ///< the file of the serving shape that shows it; empty: it was drawn
};

/// Cases by the worst |error| / bound of their outputs: twenty bins of 0.05 from 0 to 1, and one
/// for what lies beyond. Cases that are not judged by a bound (a ratio of 0) are left out.
struct ErrorHistogram {
  static constexpr int kBins = 21;
  std::array<uint64_t, kBins> cases{};
  void add(double ratio);
};

/// One property on one kernel, and what the oracle judged in its cases.
struct PropertyRun : Judged {
  const Property *property = nullptr;
  const assay_kernel *kernel = nullptr;
  bool started = false; ///< false: the run was stopped before
  int cases = 0;        ///< decided: passed or failed
  int discarded = 0;
  int unsupported = 0;  ///< of those: the kernel said that it cannot run the case
  int hollow_cases = 0; ///< of those: the property compared no output
  std::map<std::string, int> unsupported_classes;
  std::string discard_reason; ///< of the last case that was discarded
  bool narrow = false;        ///< its kernel has an envelope
  int findings = 0;
  int undecided = 0;
  ErrorHistogram errors_o, errors_lse;
  std::map<std::string, uint64_t> counters; ///< of the runs of drawn cases, summed (Sut)
  double seconds = 0;                       ///< summed over threads
  std::map<std::string, int> classes;       ///< decided cases of each class, as they ran
  ReachedSizes reached;                     ///< of decided cases, as they were drawn
  ReachedSizes asked;                       ///< of all cases
  std::vector<std::string> never_asked;     ///< sizes that a whole run lacks (run/reached.h)
  std::vector<std::string> missing; ///< important classes without a case, unsupported ones aside
  std::vector<std::string> outside; ///< important classes that the kernel's envelope leaves out
  std::vector<Finding> first;       ///< the first failure, shrunk; empty without one
  std::string harness_error;        ///< an exception; the run proves nothing

  void add_case(const Judged &one);

  /// Nothing was decided, and it is not for a feature that the kernel does not have, nor for the
  /// envelope that its cases were drawn in.
  bool hollow() const {
    return cases == 0 && !narrow && !(property->about != 0 && unsupported > discarded / 2);
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
  bool idle(const assay_kernel *kernel) const; ///< nothing was decided about it
  /// More than 1 % of a kernel's live outputs have no claim for what it declares: a pass of it
  /// proves little.
  bool declared_away(const assay_kernel *kernel) const;
};

} // namespace assay
