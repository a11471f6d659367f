// SPDX-License-Identifier: Apache-2.0
// Property: an fp8 cache gives what its values, multiplied by their scales, give in a cache of the
// call's own dtype; and NaN encodings stay NaN. Catches: decoding (subnormals, the largest
// magnitudes), scales dropped or of another head. Within bound, pairwise. Scales are powers of two
// that keep every product exact in either dtype.
#include <cmath>

#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/case/hash.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

/// 1/4, 1/2 or 1: e5m2 times them stays inside fp16, subnormals included.
float power(const Problem &p, uint32_t what, int i) {
  return std::ldexp(1.0f, -static_cast<int>(hash_values(what, p.feature_seed, p.k.seed, i) % 3));
}

void set_powers(Tensors &t) {
  const Problem &p = t.problem;
  for (int h = 0; h < p.num_kv_heads; ++h) {
    t.set_scalar(t.k_scale, h, power(p, 0xa5, h));
    t.set_scalar(t.v_scale, h, (h & 1 ? -1.0f : 1.0f) * power(p, 0xa6, h));
  }
}

Tensors widened(const Tensors &narrow) {
  Problem p = narrow.problem;
  p.kv = KvType::kSame;
  p.k_scale = p.v_scale = ScaleLayout::kNone;
  p.kv_scales = KvScaleRegime::kUnit;
  Tensors t = materialise(p);
  for (int r = 0; r < t.rows(); ++r)
    for (int h = 0; h < t.heads(); ++h)
      copy_query(t, r, h, narrow, r, h);
  for (int r = 0; r < p.batch; ++r)
    for (int k = 0; k < p.seq_lens[r]; ++k)
      for (int h = 0; h < p.num_kv_heads; ++h)
        for (int i = 0; i < p.head_dim; ++i) {
          float key = narrow.key_value(0, r, k, h, i) * narrow.key_scale(h);
          float value = narrow.val_value(0, r, k, h, i) * narrow.value_scale(h);
          t.set_key(0, r, k, h, i, to_bits(p.dtype, key));
          t.set_val(0, r, k, h, i, to_bits(p.dtype, value));
        }
  return t;
}

/// One NaN among the values of a request, which all count the same: every row that sees the key
/// must show it.
CheckResult nan_stays_nan(Tensors t, Sut &sut) {
  const Problem p = t.problem;
  const int request = pick(p, 0xa7, p.batch), last = p.seq_lens[request] - 1;
  if (last < 0 || query_tokens(p, request) == 0) return CheckResult::pass();
  const int row = row_of(p, {request, query_tokens(p, request) - 1});
  if (visible_range(p, row).size() == 0) return CheckResult::pass(); // a shard behind a window
  const int head = pick(p, 0xa8, p.num_kv_heads), dim = pick(p, 0xa9, p.head_dim);
  for (int r = 0; r < t.rows(); ++r)
    for (int h = 0; h < t.heads(); ++h)
      for (int i = 0; i < p.head_dim; ++i)
        t.set_bits(t.q, r, h, i, 0);
  t.set_val(0, request, last, head, dim, pick(p, 0xaa, 2) == 0 ? 0x7f : 0xff);
  Outcome run = run_tensors(std::move(t), sut);
  if (!run.ok()) return run.check;
  // Positions with a negative bias of ALiBi or a large sink may leave the key without weight.
  for (int h = head * p.group_size; h < (head + 1) * p.group_size; ++h)
    if (!std::isnan(run.after.out_o(row, h, dim)))
      return CheckResult::fail("NaN in the cache: " + element_name(row, h, dim) + " is a number",
                               wrong_element(Symptom::Kind::kNanLost, row, h, dim));
  return CheckResult::pass();
}

} // namespace

CheckResult fp8_equals_widened(const Problem &p, Sut &sut) {
  Problem narrow = p;
  if (!is_fp8(p)) narrow.kv = pick(p, 0xa4, 2) == 0 ? KvType::kE4m3 : KvType::kE5m2;
  narrow.k_scale = narrow.v_scale = ScaleLayout::kHead;
  Tensors t = materialise(narrow);
  set_powers(t);
  Outcome first = run_tensors(t, sut);
  if (!first.ok()) return first.check;
  Outcome second = run_tensors(widened(t), sut);
  if (!second.ok()) return second.check;
  CheckResult c = all_related(first, second, Relation{}, sut, "the cache in the call's dtype");
  if (!c.passed() || p.batch == 0 || !(sut.kernel().nan_contract & ASSAY_NAN_VALUES)) return c;
  Problem plain = narrow;
  plain.logits_soft_cap = Softcap::kNone;
  plain.alibi = Alibi::kNone;
  plain.sinks = Sinks::kNone;
  return nan_stays_nan(materialise(plain), sut);
}

} // namespace assay
