// SPDX-License-Identifier: Apache-2.0
// How far a correct kernel may be from the exact rows of a run: what relations between runs need.
#pragma once

#include <optional>
#include <vector>

#include "oracle/judge/call.h"
#include "properties/call/params.h"
#include "properties/relate/outcome.h"

namespace assay {

/// How far a correct kernel may be from the exact result of one (row, head).
struct RowBound {
  bool claim = false; ///< false: the oracle says nothing about this row (fp32 range may be left)
  bool empty = false; ///< no keys, or no live state
  std::vector<double> o, o_radius; ///< exact value (midpoint) and allowed distance, per dim
  double lse = 0, lse_radius = 0;
};

/// One attention row with every tier that applies, and what it comes from.
struct OracleRow {
  std::vector<float> q;
  const oracle::KeySet *keys; ///< without the sink; kept until another group is asked about
  oracle::RowReference reference;
};

/// The bounds of a run's rows by what its kernel declares. Keeps the keys of the last group of
/// heads asked about: head after head, they are gathered once. Run and Sut must outlive it.
class RunBounds {
public:
  RunBounds(const Outcome &run, Sut &sut);
  RunBounds(const RunBounds &) = delete;
  RunBounds &operator=(const RunBounds &) = delete;

  const Outcome &run() const { return run_; }

  /// T0 and the LSE.
  RowBound row(int row, int head);
  OracleRow every_tier(int row, int head, bool replay_scores);
  /// Into how many parts that are merged through (O, LSE) an attention row is cut: as declared, or
  /// at most.
  int splits(int row, int head) const;

private:
  oracle::GroupKeys &keys_of(int row, int kv_head);
  RowBound attention_row(int row, int head);
  RowBound merge_row(int row, int head) const;

  const Outcome &run_;
  AbiParams params_;
  oracle::KernelModel model_;
  std::optional<oracle::GroupKeys> keys_;
  int keys_row_ = -1, keys_head_ = -1; ///< whose keys those are
};

} // namespace assay
