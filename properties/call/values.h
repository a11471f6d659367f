// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "properties/case/problem.h"

namespace assay {

/// Who a value belongs to, logically. Values depend on this and the seed only, never on where the
/// page lies, so that moving pages keeps them.
struct LogicalIndex {
  int row;   ///< request, cascade segment or merge row
  int head;  ///< query head for q, kv head for k and v, merge head
  int token; ///< key of the row; state of a merge; 0 for q
  int dim;
};

/// The bits of a row of head_dim elements. What all its elements share is computed once: drawn
/// cases have millions of elements.
class RowValues {
public:
  /// Of the row that `at` names; at.dim does not matter. `p` outlives it.
  static RowValues query(const Problem &p, const LogicalIndex &at);
  static RowValues key(const Problem &p, const LogicalIndex &at);
  static RowValues value(const Problem &p, const LogicalIndex &at); ///< also o of a merge input

  uint32_t bits(int dim) const;
  /// All of them, elements of `size` bytes.
  void write(std::byte *to, int size) const;

private:
  template <class Bits, class Of>
  void write_each(std::byte *to, Of bits_of) const;
  enum class Kind : uint8_t { kPlain, kQuery, kKey }; // the others: where scores are chosen
  RowValues(const Problem &p, const Values &values, uint32_t tensor, const LogicalIndex &at,
            Dtype dtype);
  double direction(int dim) const;

  Kind kind_ = Kind::kPlain;
  Dtype dtype_;
  const Values *values_;
  LogicalIndex at_;
  int head_dim_;
  uint64_t prefix_;         ///< of the hashes of its elements
  double scale_;            ///< 2^exponent
  uint64_t directions_ = 0; ///< prefix of the hashes of directions
  double logit_ = 0;        ///< of kKey: magnitude of its elements
};

inline uint32_t query_bits(const Problem &p, const LogicalIndex &at) {
  return RowValues::query(p, at).bits(at.dim);
}
inline uint32_t key_bits(const Problem &p, const LogicalIndex &at) {
  return RowValues::key(p, at).bits(at.dim);
}
inline uint32_t value_bits(const Problem &p, const LogicalIndex &at) {
  return RowValues::value(p, at).bits(at.dim);
}
/// LSE of merge state at.token; -inf for an empty state.
float state_lse(const Problem &p, const LogicalIndex &at, int states_in_row);

/// Feature tensors: a scale of kv head (or tensor) `i`, the slope and the sink of query head `i`.
float key_scale_of(const Problem &p, int i);
float value_scale_of(const Problem &p, int i);
float slope_of(const Problem &p, int head);
float sink_of(const Problem &p, int head);

/// Garbage for slots that must not matter. `salt` separates slots under kRandomBits.
uint32_t poison_bits(Poison poison, Dtype dtype, uint64_t salt);
/// Garbage for dead page-table entries.
int32_t poison_page(Poison poison, int pool_pages, uint64_t salt);

} // namespace assay
