// SPDX-License-Identifier: Apache-2.0
// Property: keys before the window of every query token of their request never change a bit,
// whatever they hold. Catches: windows off by one, masks applied after the arithmetic (0 * NaN),
// maxima over masked keys. Bitwise.
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

/// Returns how many keys were poisoned.
int poison_hidden(Tensors &t) {
  const Problem &p = t.problem;
  const uint32_t k = poison_bits(p.poison, kv_dtype(p), 0x41d);
  const uint32_t v = poison_bits(p.poison, kv_dtype(p), 0x41e);
  int hidden = 0;
  for (int request = 0; request < p.batch; ++request) {
    // The oldest token that sees anything sees the oldest key.
    int first = p.seq_lens[request];
    for (int token = query_tokens(p, request) - 1; token >= 0; --token)
      if (PositionRange r = visible_range(p, row_of(p, {request, token})); r.size() > 0)
        first = r.begin;
    for (int key = 0; key < first; ++key, ++hidden)
      for (int h = 0; h < p.num_kv_heads; ++h)
        for (int i = 0; i < p.head_dim; ++i) {
          t.set_key(0, request, key, h, i, k);
          t.set_val(0, request, key, h, i, v);
        }
  }
  return hidden;
}

} // namespace

CheckResult window_hides(const Problem &p, Sut &sut) {
  Problem windowed = p;
  if (p.window_left < 0) windowed.window_left = pick(p, 0x817d, 40);
  windowed.sharing = Sharing::kNone; // a slot of two positions may be hidden and seen
  if (windowed.placement == Placement::kExplicit) windowed.placement = Placement::kReversed;
  windowed.page_ids.clear();
  Tensors t = materialise(windowed);
  if (poison_hidden(t) == 0) return CheckResult::discard("the window hides nothing");
  Outcome clean = run_problem(windowed, sut);
  if (!clean.ok()) return clean.check;
  Outcome dirty = run_tensors(std::move(t), sut);
  if (!dirty.ok()) return dirty.check;
  return same_result(clean, dirty, sut,
                     std::string(name_of(p.poison)) + " in keys before the window");
}

} // namespace assay
