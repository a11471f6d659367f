// SPDX-License-Identifier: Apache-2.0
// Property: adding one constant to all scores of a row leaves O alone and adds it to LSE. Catches:
// finite sentinels for masked scores, maxima that start at 0, LSE without the maximum, clamped
// exponents. Within bound, pairwise. The shift is exact: one dimension of q is 1 and all keys get
// the same number there; a merge adds it to every LSE. Without softcap, which a shift does not
// pass, and without a sink, which it does not reach.
#include <cmath>

#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

constexpr int kShifts[] = {8, -8, 4096, -4096, 64};
constexpr int kSmallShifts[] = {8, -8, 256, -256, 64}; // e4m3 ends at 448

void set_dimension_0(Tensors &t, float key) {
  const Problem &p = t.problem;
  for (int r = 0; r < t.rows(); ++r)
    for (int h = 0; h < t.heads(); ++h)
      t.set_bits(t.q, r, h, 0, to_bits(p.dtype, 1.0f));
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int k = 0; k < t.caches[c].len[row]; ++k)
        for (int h = 0; h < p.num_kv_heads; ++h)
          t.set_key(static_cast<int>(c), row, k, h, 0, to_bits(kv_dtype(p), key));
}

CheckResult shift_attention(Problem p, Sut &sut, int shift) {
  p.logits_soft_cap = Softcap::kNone;
  p.sinks = Sinks::kNone;
  Tensors plain = materialise(p), shifted = materialise(p);
  set_dimension_0(plain, 0.0f);
  set_dimension_0(shifted, static_cast<float>(shift));
  Outcome first = run_tensors(std::move(plain), sut);
  if (!first.ok()) return first.check;
  Outcome second = run_tensors(std::move(shifted), sut);
  if (!second.ok()) return second.check;
  auto relation = [&](int head) {
    double offset = shift * double(sm_scale(p)) * first.before.key_scale(head / p.group_size);
    if (p.lse_base == LseBase::kBase2) offset *= 1.44269504088896340736;
    return Relation{.lse_offset = offset, .lse_slack = std::fabs(offset) * 0x1p-50};
  };
  return all_related(first, second, relation, sut,
                     "all scores shifted by " + std::to_string(shift) + " * the scale");
}

/// LSEs that are multiples of 1/64 below 2^17 move exactly by small integers.
void quantise(Tensors &t, float shift) {
  for (View &lse : t.in_lse) {
    if (lse.buffer < 0) continue;
    int states = t.first_state.empty() ? t.problem.batch : t.first_state.back();
    for (int s = 0; s < states; ++s)
      for (int h = 0; h < t.heads(); ++h) {
        float l = t.value(lse, s, h);
        if (std::isinf(l)) continue;
        t.set_bits(lse, s, h, 0, to_bits(Dtype::kFp32, std::nearbyint(l * 64) / 64 + shift));
      }
  }
}

CheckResult shift_merge(const Problem &p, Sut &sut, int shift) {
  Tensors plain = materialise(p), shifted = materialise(p);
  quantise(plain, 0.0f);
  quantise(shifted, static_cast<float>(shift));
  Outcome first = run_tensors(std::move(plain), sut);
  if (!first.ok()) return first.check;
  Outcome second = run_tensors(std::move(shifted), sut);
  if (!second.ok()) return second.check;
  return all_related(first, second, Relation{.lse_offset = double(shift)}, sut,
                     "every LSE shifted by " + std::to_string(shift));
}

} // namespace

CheckResult score_shift(const Problem &p, Sut &sut) {
  int at = pick(p, 0x5417, 5);
  int shift = p.kv == KvType::kE4m3 ? kSmallShifts[at] : kShifts[at];
  return is_attention(p) ? shift_attention(p, sut, shift) : shift_merge(p, sut, shift);
}

} // namespace assay
