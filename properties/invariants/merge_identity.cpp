// SPDX-License-Identifier: Apache-2.0
// Property: merging with empty states (lse = -inf, o anything, NaN included) returns the one live
// state bit for bit, on whichever side it is; nothing live gives 0 and -inf. Where the kernel
// declares that NaN scores reach its outputs, the LSE of one live state may be NaN. Catches:
// -inf - -inf, 0 * NaN, maxima that drop NaN, a pass through fp32 that loses bits. Of merge_state,
// which assay.h promises so, the live state may hold -0. Bitwise.
#include <cmath>

#include "properties/call/materialise.h"
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

/// Makes the LSE of a live state NaN where it is the only one of its row.
void set_nan(Tensors &t) {
  const Problem &p = t.problem;
  const int row = pick(p, 0x91d0, p.batch), head = pick(p, 0x91d1, t.heads());
  const Live live = find_live(t, row, head);
  if (live.count != 1 || pick(p, 0x91d2, 2) == 0) return;
  t.set_bits(t.in_lse[live.side], live.state, head, 0, poison_bits(Poison::kNan, Dtype::kFp32, 0));
}

/// Gives a live state that is alone in its row a zero whose sign arithmetic with 0 loses.
void set_negative_zero(Tensors &t) {
  const Problem &p = t.problem;
  const int row = pick(p, 0x91d3, p.batch), head = pick(p, 0x91d4, t.heads());
  const Live live = find_live(t, row, head);
  if (live.count != 1) return;
  const View &o = t.in_o[live.side];
  t.set_bits(o, live.state, head, pick(p, 0x91d5, p.head_dim), 1u << (8 * o.size - 1));
}

CheckResult check_row(const Outcome &run, int row, int head) {
  const Tensors &in = run.before, &out = run.after;
  Live live = find_live(in, row, head);
  if (live.count > 1) return CheckResult::pass();
  const float lse = live.side < 0 ? -INFINITY : in.value(in.in_lse[live.side], live.state, head);
  count_compared(static_cast<uint64_t>(in.problem.head_dim));
  // Where the LSE is NaN, O may be so, too.
  for (int i = 0; i < in.problem.head_dim && !std::isnan(lse); ++i) {
    uint32_t want = live.side < 0 ? 0 : in.bits(in.in_o[live.side], live.state, head, i);
    if (out.bits(out.o, row, head, i) != want)
      return CheckResult::fail(element_name(row, head, i) + ": merging with empty states gives " +
                                   std::to_string(out.out_o(row, head, i)) + ", not the bits of " +
                                   (live.side < 0 ? "zero" : "the live state"),
                               wrong_element(Symptom::Kind::kNotExact, row, head, i));
  }
  if (out.lse.buffer < 0) return CheckResult::pass();
  if (out.out_lse(row, head) == lse) return CheckResult::pass();
  if (std::isnan(lse) && std::isnan(out.out_lse(row, head))) return CheckResult::pass();
  return CheckResult::fail(element_name(row, head, -1) + ": merging with empty states gives " +
                               std::to_string(out.out_lse(row, head)) + ", not " +
                               std::to_string(lse),
                           wrong_value(row, head, -1, out.out_lse(row, head), lse, 0));
}

} // namespace

CheckResult merge_identity(const Problem &p, Sut &sut) {
  Problem one = p;
  if (p.lse_regime != LseRegime::kAllEmpty && p.lse_regime != LseRegime::kSomeEmpty)
    one.lse_regime = LseRegime::kOneAlive;
  Tensors t = materialise(one);
  if (p.batch > 0 && (sut.kernel().nan_contract & ASSAY_NAN_SCORES) != 0) set_nan(t);
  if (p.batch > 0 && p.family == Family::kMergeState) set_negative_zero(t);
  Outcome run = run_tensors(std::move(t), sut);
  if (!run.ok()) return run.check;
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < run.after.heads(); ++h)
      if (CheckResult c = check_row(run, r, h); !c.passed()) return c;
  return CheckResult::pass();
}

} // namespace assay
