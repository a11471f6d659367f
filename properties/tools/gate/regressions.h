// SPDX-License-Identifier: Apache-2.0
// Whether head does worse than base without being wrong: error over bound, size, registers.
#pragma once

#include "properties/tools/gate/red_line.h"
#include "properties/tools/gate/revision.h"

namespace assay::gate {

/// How the error of one output of one kernel moved: over the properties that ran the same draws on
/// both revisions, and differ.
struct ErrorShift {
  std::string kernel, output; ///< "o" or "lse"
  double base = 0, head = 0;  ///< worst error over bound
  int more = 0, less = 0;     ///< properties in which head's worst is larger, smaller
  double median = 1;          ///< median of head / base over those that differ
  double p = 1;               ///< one-sided sign test: what chance alone would make of `more`
  bool grew = false;          ///< beyond chance, over all shifts of the run, and by a quarter
};

/// Compares errors in two documents of `check` over the same draws, at a false discovery rate of
/// 5 %.
std::vector<ErrorShift> error_shifts(const json &base, const json &head);

/// Probability of `more` or more heads of `more + less` throws.
double sign_test(int more, int less);

/// How often a kernel did something on the executor, over the properties that ran the same draws on
/// both revisions. Runs are deterministic, so that any difference is one of the kernels.
struct CounterShift {
  std::string kernel, counter;
  uint64_t base = 0, head = 0;
};

/// Compares counters in two documents of `check` over the same draws. Empty for kernels on a target
/// that counts nothing.
std::vector<CounterShift> counter_shifts(const json &base, const json &head);

/// What else is measured of both revisions: a line of the report each. Red ones have the id
/// "figures".
struct Figures {
  RedLines red;
  std::vector<std::string> notes;
};

/// Judges all rounds: a line per kernel for what moved; red with the id "counters-grew" where head
/// loads or stores more bytes, launches more often or waits at more block barriers by a twentieth.
Figures judge_counters(const std::vector<CounterShift> &shifts);

/// Bytes of two files: red above +25 % and 1 MiB. Nothing where one is not there.
Figures compare_size(const std::string &base, const std::string &head);

/// Two tables of ci/kernel_figures.py (arch,kernel,arguments,threads,registers,stack,shared): red
/// for a stack that base does not have, and for registers or shared memory that cost a block on
/// the SM (65,536 registers, 227 KiB).
Figures compare_figures(const std::string &base_csv, const std::string &head_csv);

} // namespace assay::gate
