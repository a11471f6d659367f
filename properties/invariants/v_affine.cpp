// SPDX-License-Identifier: Apache-2.0
// Property: replacing V by -2 V + 3 replaces O by -2 O + 3 and leaves LSE alone. Catches: terms
// that bypass the weights, clamped or unsigned values, V read through K. Within bound, pairwise;
// the map is exact on the integers used.
#include "properties/invariants/bounds.h"
#include "properties/invariants/invariants.h"

namespace assay {
namespace {

uint32_t mapped(Dtype dtype, uint32_t bits) {
  return to_bits(dtype, -2.0f * from_bits(dtype, bits) + 3.0f);
}

void map_values(Tensors &t) {
  Dtype dtype = t.problem.dtype;
  // Shared pages: read from the original, so that a slot used twice is mapped once.
  Tensors from = t;
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int k = 0; k < t.caches[c].len[row]; ++k)
        for (int h = 0; h < t.problem.num_kv_heads; ++h)
          for (int i = 0; i < t.problem.head_dim; ++i)
            t.set_val(static_cast<int>(c), row, k, h, i,
                      mapped(dtype, from.val(static_cast<int>(c), row, k, h, i)));
  for (int side = 0; side < 2 && is_merge(t.problem); ++side) {
    if (t.in_o[side].buffer < 0) continue;
    int states = t.first_state.empty() ? t.problem.batch : t.first_state.back();
    for (int s = 0; s < states; ++s)
      for (int h = 0; h < t.heads(); ++h)
        for (int i = 0; i < t.problem.head_dim; ++i)
          t.set_bits(t.in_o[side], s, h, i, mapped(dtype, from.bits(t.in_o[side], s, h, i)));
  }
}

} // namespace

CheckResult v_affine(const Problem &p, Sut &sut) {
  Problem integers = p;
  integers.v.regime = Regime::kSmallInt;
  integers.v.exponent = 0;
  Outcome first = run_problem(integers, sut);
  if (!first.ok()) return first.check;
  Tensors t = materialise(integers);
  map_values(t);
  Outcome second = run_tensors(std::move(t), sut);
  if (!second.ok()) return second.check;
  return all_related(first, second, {.scale = -2, .offset = 3}, sut, "V replaced by -2 V + 3");
}

} // namespace assay
