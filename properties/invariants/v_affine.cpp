// SPDX-License-Identifier: Apache-2.0
// Property: replacing V by -2 V + 3 replaces O by -2 O + 3 and leaves LSE alone. Catches: terms
// that bypass the weights, clamped or unsigned values, V read through K. Within bound, pairwise;
// the map is exact on the integers used. With a sink the weights of the keys sum to less than one,
// and e5m2 has no 11: there V is replaced by -2 V.
#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

uint32_t mapped(Dtype dtype, uint32_t bits, float offset) {
  return to_bits(dtype, -2.0f * from_bits(dtype, bits) + offset);
}

void map_values(Tensors &t, float offset) {
  Dtype dtype = kv_dtype(t.problem);
  // Shared pages: read from the original, so that a slot used twice is mapped once.
  Tensors from = t;
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int k = 0; k < t.caches[c].len[row]; ++k)
        for (int h = 0; h < t.problem.num_kv_heads; ++h)
          for (int i = 0; i < t.problem.head_dim; ++i)
            t.set_val(static_cast<int>(c), row, k, h, i,
                      mapped(dtype, from.val(static_cast<int>(c), row, k, h, i), offset));
  for (int side = 0; side < 2 && is_merge(t.problem); ++side) {
    if (t.in_o[side].buffer < 0) continue;
    int states = t.first_state.empty() ? t.problem.batch : t.first_state.back();
    for (int s = 0; s < states; ++s)
      for (int h = 0; h < t.heads(); ++h)
        for (int i = 0; i < t.problem.head_dim; ++i)
          t.set_bits(t.in_o[side], s, h, i,
                     mapped(dtype, from.bits(t.in_o[side], s, h, i), offset));
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
  const float offset = p.sinks != Sinks::kNone || p.kv == KvType::kE5m2 ? 0.0f : 3.0f;
  map_values(t, offset);
  Outcome second = run_tensors(std::move(t), sut);
  if (!second.ok()) return second.check;
  auto relation = [&](int head) {
    return Relation{.scale = -2,
                    .offset = double(offset) * first.before.value_scale(head / p.group_size)};
  };
  return all_related(first, second, relation, sut,
                     offset != 0 ? "V replaced by -2 V + 3" : "V replaced by -2 V");
}

} // namespace assay
