// SPDX-License-Identifier: Apache-2.0
// Property: over exact numbers the kernel returns sum w v / sum w and the sum of w itself, equal in
// every bit, at any length and any split. Catches: every index, mask, page, rescaling and weight
// mistake that changes the function, LSE included, however small its effect on real values. Known
// value, no tolerance.
//
// The kernel is the same source, run on the CPU executor over ASSAY_FIELD61 (kernels/abi/assay.h):
// residues modulo p = 2^61 - 1 with 2^x := g^x. What a kernel computes is built from +, *, /, 2^x
// and log2, so it is a rational function, and a wrong one shows on random inputs: a single output
// or score agrees by chance with probability about 2^-14 (the literals), the many of a case do not.
// What it cannot see: rounding, overflow, the choice of the maximum (any shift is the same
// function).
//
// Inputs: 15-bit literals by position in Q, K, V; for merges random residues, and LSEs g^b m of
// which half share one of three exponents. Dead words hold no number: using one makes the result
// undefined, which is reported with its reason.
#include <fmt/format.h>

#include "properties/invariants/invariants.h"
#include "properties/relate/compared.h"
#include "properties/relate/field_call.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

CheckResult check_row(const Outcome &run, int row, int head) {
  const FieldRow expected = field_reference(run.before, row, head);
  std::string wrong;
  const FieldRow got = field_result(run.after, row, head, wrong);
  const auto fail = [&](const std::string &what, int dim) {
    return CheckResult::fail("algebra: " + what,
                             wrong_element(Symptom::Kind::kNotExact, row, head, dim));
  };
  if (!wrong.empty())
    return CheckResult::fail("algebra: " + wrong,
                             plain_symptom(Symptom::Kind::kNotExact, without_numbers(wrong)));
  count_compared(expected.o.size());
  for (size_t i = 0; i < expected.o.size(); ++i)
    if (got.o[i] != expected.o[i])
      return fail(fmt::format("{} is {}, exactly {} (mod 2^61 - 1)",
                              element_name(row, head, static_cast<int>(i)), got.o[i],
                              expected.o[i]),
                  static_cast<int>(i));
  if (!run.before.problem.has_lse || (got.empty && expected.empty)) return CheckResult::pass();
  const std::string name = element_name(row, head, -1);
  if (got.empty != expected.empty)
    return fail(fmt::format("{} is {}-inf", name, got.empty ? "" : "not "), -1);
  if (got.mass == expected.mass) return CheckResult::pass();
  return fail(fmt::format("2^({}) is {}, exactly {} (mod 2^61 - 1)", name, got.mass, expected.mass),
              -1);
}

} // namespace

CheckResult algebra_exact(const Problem &p, Sut &sut) {
  Outcome run = run_tensors(field_inputs(p), sut);
  if (!run.ok()) return run.check;
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < run.after.heads(); ++h)
      if (CheckResult c = check_row(run, r, h); !c.passed()) return c;
  return CheckResult::pass();
}

} // namespace assay
