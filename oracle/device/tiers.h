// SPDX-License-Identifier: Apache-2.0
// Every tier of a call's rows: T0, the LSE, and T1 and T2 where they apply, on the GPU that holds
// the call or, by the same text, here. A row is either certainly inside in all its elements, or
// left to the host.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oracle/judge/judge.h"
#include "oracle/judge/verdict.h"
#include "oracle/rows/read.h"

namespace assay::oracle {

/** What an output must be; `bound` NaN: nothing is claimed. */
struct ElementBounds {
  double mid, rad, bound;
};

/** What an element of a row was held against. */
struct TierElement {
  int32_t tier = 0, dim = 0; ///< dim -1: the LSE
  float got = 0.0f;
  Enclosure reference;
  BudgetTerms budget;
  double ratio = -1.0;
};

/** A (row, head) pair. */
struct TierRow {
  int32_t inside = 0; ///< 1: every element is claimed and certainly inside, in every tier
  int32_t claims = 0; ///< 0: nothing is claimed about the row
  int32_t near = 0;   ///< 1: as one it may be outside in a direction that only the host tries
  /// |got - mid| / bound, at most: T0, T1, T2, the LSE, the row as one along its error. Below 0: it
  /// does not apply.
  double worst[5] = {-1.0, -1.0, -1.0, -1.0, -1.0};
  TierElement element; ///< of the largest
};

/// Whether two texts say the same of a row as one: ratios, negative or NaN where there is none.
/// None is as 0: the output may be the exact one, which differs by the last bit of a sum from one
/// order of additions to another.
inline bool same_row_ratio(double one, double other) {
  return std::fabs(std::fmax(one, 0.0) - std::fmax(other, 0.0)) <= 1e-6;
}

struct TierReport {
  std::vector<TierRow> rows;     ///< [rows, heads]
  std::vector<RowHead> open;     ///< those that the host decides, in their order
  std::vector<RowHead> doubtful; ///< of those, the ones about which something is claimed
  std::vector<RowHead> near;     ///< of the others, TierRow::near: the largest ratios first
  Report decided;                ///< of the others
  double device_ms = 0.0;        ///< of the GPU
  std::vector<uint64_t> budgets; ///< as report_of takes them
  /// Bounds of all elements where they were asked for: [rows, heads, dims and the LSE][tier].
  std::vector<std::array<ElementBounds, 3>> elements;
};

/** From what the text left of each pair, and its counts of budgets (BudgetSizes). */
TierReport report_of(const RowOutputs &out, bool has_lse, std::vector<TierRow> pairs,
                     std::span<const uint64_t> budgets);

struct JudgeOptions {
  bool first_tier_alone = false; ///< T0, rows as one and the LSE, whatever order is declared
  bool elements = false;         ///< TierReport::elements
};

/** Why a call cannot be judged so; empty: it can. */
std::string tiers_refuse(const AttentionRows &rows, const KernelModel &model);

/** The GPU's text, run here by one thread. Throws as TierJudge does. */
TierReport judge_tiers_here(const AttentionRows &rows, const CallOutputs &outputs,
                            const KernelModel &model, const JudgeOptions &options = {});

/** On the current device; not for two threads at once. */
class TierJudge {
public:
  TierJudge();
  ~TierJudge();
  TierJudge(const TierJudge &) = delete;
  TierJudge &operator=(const TierJudge &) = delete;

  /**
   * `rows` hold places in arrays of the device, and so do the outputs; scales of tokens are read
   * here. All launches go to `stream` (a cudaStream_t); returns when they are done. Small calls are
   * one launch. Throws std::invalid_argument where tiers_refuse, OrderError as the host's judge,
   * std::runtime_error when the device fails.
   */
  TierReport judge(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
                   void *stream = nullptr, const JudgeOptions &options = {});

  /** A stream for callers that have none: nothing else waits for it. */
  void *own_stream();

  /** Copies a block to the device, where it stays until the next one: where its first byte lies. */
  std::byte *upload(const std::byte *block, size_t bytes, void *stream = nullptr);

private:
  struct Device;
  std::unique_ptr<Device> device_;
};

} // namespace assay::oracle
