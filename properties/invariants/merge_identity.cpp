// SPDX-License-Identifier: Apache-2.0
// Property: merging with empty states (lse = -inf, o anything, NaN included) returns the one live
// state bit for bit, on whichever side it is; nothing live gives 0 and -inf. Catches: -inf - -inf,
// 0 * NaN, a pass through fp32 that loses bits. Bitwise.
#include <cmath>

#include "properties/invariants/invariants.h"
#include "properties/relate/compared.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

/// The live state of (row, head): side and state index, or side -1.
struct Live {
  int side = -1, state = 0, count = 0;
};

Live find_live(const Tensors &t, int row, int head) {
  Live live;
  auto look = [&](int side, int state) {
    if (std::isinf(t.value(t.in_lse[side], state, head))) return;
    live.side = side;
    live.state = state;
    ++live.count;
  };
  if (t.problem.family == Family::kMergeState) {
    look(0, row);
    look(1, row);
  } else {
    for (int s = t.first_state[row]; s < t.first_state[row + 1]; ++s)
      look(0, s);
  }
  return live;
}

CheckResult check_row(const Outcome &run, int row, int head) {
  const Tensors &in = run.before, &out = run.after;
  Live live = find_live(in, row, head);
  if (live.count > 1) return CheckResult::pass();
  count_compared(static_cast<uint64_t>(in.problem.head_dim));
  for (int i = 0; i < in.problem.head_dim; ++i) {
    uint32_t want = live.side < 0 ? 0 : in.bits(in.in_o[live.side], live.state, head, i);
    if (out.bits(out.o, row, head, i) != want)
      return CheckResult::fail(element_name(row, head, i) + ": merging with empty states gives " +
                                   std::to_string(out.out_o(row, head, i)) + ", not the bits of " +
                                   (live.side < 0 ? "zero" : "the live state"),
                               wrong_element(Symptom::Kind::kNotExact, row, head, i));
  }
  if (out.lse.buffer < 0) return CheckResult::pass();
  float want = live.side < 0 ? -INFINITY : in.value(in.in_lse[live.side], live.state, head);
  if (out.out_lse(row, head) == want) return CheckResult::pass();
  return CheckResult::fail(element_name(row, head, -1) + ": merging with empty states gives " +
                               std::to_string(out.out_lse(row, head)) + ", not " +
                               std::to_string(want),
                           wrong_value(row, head, -1, out.out_lse(row, head), want, 0));
}

} // namespace

CheckResult merge_identity(const Problem &p, Sut &sut) {
  Problem one = p;
  if (p.lse_regime != LseRegime::kAllEmpty && p.lse_regime != LseRegime::kSomeEmpty)
    one.lse_regime = LseRegime::kOneAlive;
  Outcome run = run_problem(one, sut);
  if (!run.ok()) return run.check;
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < run.after.heads(); ++h)
      if (CheckResult c = check_row(run, r, h); !c.passed()) return c;
  return CheckResult::pass();
}

} // namespace assay
