// SPDX-License-Identifier: Apache-2.0
// Property: a sink gives what one more key with its logit and V = 0 gives. Catches: sinks that are
// lost, counted once per split, missing from LSE, in the wrong base, of another head. Within bound,
// pairwise. The logit is exact: dim 0 of q is 1, dim 0 of K is 0 but for the extra key, and the
// scale is a power of two. Without what treats a key by its position or caps its logit.
#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

constexpr float kScores[] = {0, 8, -8, 64, -64, 16, 4};

Problem plain_rows(const Problem &p) {
  Problem plain = with_one_token(p);
  plain.window_left = -1;
  plain.logits_soft_cap = Softcap::kNone;
  plain.alibi = Alibi::kNone;
  plain.sharing = Sharing::kNone;
  if (plain.placement == Placement::kExplicit) plain.placement = Placement::kReversed;
  plain.page_ids.clear();
  plain.k_scale = ScaleLayout::kNone;
  plain.scale = p.head_dim == 128 ? ScaleKind::kOne : ScaleKind::kInvSqrt;
  return plain;
}

void clear_dimension_0(Tensors &t) {
  const Problem &p = t.problem;
  for (int r = 0; r < t.rows(); ++r)
    for (int h = 0; h < t.heads(); ++h)
      t.set_bits(t.q, r, h, 0, to_bits(p.dtype, 1.0f));
  for (int r = 0; r < p.batch; ++r)
    for (int k = 0; k < p.seq_lens[r]; ++k)
      for (int h = 0; h < p.num_kv_heads; ++h)
        t.set_key(0, r, k, h, 0, 0);
}

float score_of(const Problem &p, int kv_head) { return kScores[pick(p, 0x51c + kv_head, 7)]; }

} // namespace

CheckResult sink_equals_key(const Problem &p, Sut &sut) {
  Problem sunk = plain_rows(p);
  sunk.sinks = Sinks::kNormal;
  Tensors with_sink = materialise(sunk);
  clear_dimension_0(with_sink);
  for (int h = 0; h < with_sink.heads(); ++h)
    with_sink.set_scalar(with_sink.sinks, h, score_of(p, h / p.group_size) * sm_scale(sunk));
  Problem longer = sunk;
  longer.sinks = Sinks::kNone;
  for (int &n : longer.seq_lens)
    ++n;
  Tensors with_key = materialise(longer);
  clear_dimension_0(with_key);
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < p.num_kv_heads; ++h)
      for (int i = 0; i < p.head_dim; ++i) {
        float x = i == 0 ? score_of(p, h) : 0.0f;
        with_key.set_key(0, r, sunk.seq_lens[r], h, i, to_bits(kv_dtype(p), x));
        with_key.set_val(0, r, sunk.seq_lens[r], h, i, 0);
      }
  Outcome first = run_tensors(std::move(with_sink), sut);
  if (!first.ok()) return first.check;
  Outcome second = run_tensors(std::move(with_key), sut);
  if (!second.ok()) return second.check;
  return all_related(first, second, Relation{}, sut, "the sink as one more key");
}

} // namespace assay
