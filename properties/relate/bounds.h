// SPDX-License-Identifier: Apache-2.0
// How far a correct kernel may be from the exact rows of a run: what relations between runs need.
#pragma once

#include <optional>
#include <vector>

#include "properties/relate/outcome.h"
#include "properties/sut/oracle_call.h"

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

/// The bounds of a run's rows by what its kernel declares. Head after head, the keys of a row are
/// gathered once. Run and Sut must outlive it.
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
  int splits(int row) const;

private:
  RowBound merge_row(int row, int head);

  const Outcome &run_;
  const OracleCall call_;
  std::optional<oracle::AttentionReader> attention_; ///< one of the two
  std::optional<oracle::MergeReader> merges_;
};

} // namespace assay
