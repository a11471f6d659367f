// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "properties/call/row_values.h"
#include "properties/case/problem.h"

namespace assay {

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
