// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/outcome.h"

#include <cmath>

#include <fmt/format.h>

#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/case/device_limits.h"
#include "properties/case/hash.h"
#include "properties/relate/compared.h"

namespace assay {
namespace {

const char *status_word(assay_status status) {
  static constexpr const char *kNames[] = {"ok",
                                           "invalid argument",
                                           "unsupported",
                                           "workspace too small",
                                           "capacity exceeded",
                                           "launch failed",
                                           "hazard",
                                           "internal"};
  return status >= 0 && status < 8 ? kNames[status] : "unknown status";
}

CheckResult unsupported(const std::string &text, const Tensors &t) {
  CheckResult out = CheckResult::discard(text);
  out.unsupported = true;
  const auto abi = [&](Dtype d) {
    return t.numbers.empty() ? static_cast<assay_dtype>(d) : ASSAY_FIELD61;
  };
  out.refused = {abi(t.problem.dtype), abi(kv_dtype(t.problem)), t.problem.head_dim};
  return out;
}

CheckResult judge(const RunResult &r, const Tensors &t) {
  // Hazards first: they say where, and a status or a violation is usually their consequence.
  if (!r.hazards.empty())
    return CheckResult::fail("hazard: " + r.hazards[0].text, symptom_of(r.hazards[0]));
  if (!r.violations.empty())
    return CheckResult::fail("memory: " + text_of(r.violations[0]), symptom_of(r.violations[0]));
  if (r.status == ASSAY_OK) return CheckResult::pass();
  const std::string word = status_word(r.status), text = fmt::format("{}: {}", word, r.message);
  if (r.status == ASSAY_UNSUPPORTED || r.status == ASSAY_CAPACITY_EXCEEDED)
    return unsupported(text, t);
  return CheckResult::fail(
      "refused a valid call: " + text,
      plain_symptom(Symptom::Kind::kRefused, word + ": " + without_numbers(r.message)));
}

bool same_element(uint32_t a, uint32_t b, Dtype dtype) {
  return a == b || (std::isnan(from_bits(dtype, a)) && std::isnan(from_bits(dtype, b)));
}

} // namespace

Outcome run_tensors(Tensors t, Sut &sut) {
  if (sut.assumed().finite_pool) make_pools_finite(t);
  Outcome out{t, std::move(t), {}};
  const RunResult result = sut.run(out.after, out.before.buffers);
  out.check = judge(result, out.before);
  return out;
}

Outcome run_problem(const Problem &p, Sut &sut) {
  if (!is_big(p)) return run_tensors(materialise(p), sut);
  Outcome out;
  out.check =
      CheckResult::discard("more than a host holds: assay replay --target cuda, within_budget");
  return out;
}

std::string element_name(int row, int head, int dim) {
  const std::string pair = fmt::format("row {} head {}", row, head);
  if (dim == Symptom::kRow) return pair + " along its error";
  return dim == Symptom::kLse ? pair + " lse" : fmt::format("{} dim {}", pair, dim);
}

CheckResult same_row_bits(const Tensors &a, int row_a, int head_a, const Tensors &b, int row_b,
                          int head_b, const std::string &what) {
  auto differ = [&](int dim, uint32_t x, uint32_t y, Dtype dtype) {
    const double got = from_bits(dtype, y), was = from_bits(dtype, x);
    Symptom symptom = wrong_element(Symptom::Kind::kBits, row_a, head_a, dim);
    symptom.got = got;
    symptom.expected = was;
    return CheckResult::fail(fmt::format("{}: {} is {:.9g} ({:#x}), was {:.9g} ({:#x})", what,
                                         element_name(row_a, head_a, dim), got, y, was, x),
                             std::move(symptom));
  };
  count_compared(static_cast<uint64_t>(a.problem.head_dim));
  for (int i = 0; i < a.problem.head_dim; ++i) {
    uint32_t x = a.bits(a.o, row_a, head_a, i), y = b.bits(b.o, row_b, head_b, i);
    if (!same_element(x, y, a.problem.dtype)) return differ(i, x, y, a.problem.dtype);
  }
  if (a.lse.buffer < 0 || b.lse.buffer < 0) return CheckResult::pass();
  uint32_t x = a.bits(a.lse, row_a, head_a), y = b.bits(b.lse, row_b, head_b);
  if (!same_element(x, y, Dtype::kFp32)) return differ(-1, x, y, Dtype::kFp32);
  return CheckResult::pass();
}

CheckResult same_bits(const Tensors &a, const Tensors &b, const std::string &what) {
  for (int r = 0; r < a.rows(); ++r)
    for (int h = 0; h < a.heads(); ++h)
      if (CheckResult c = same_row_bits(a, r, h, b, r, h, what); !c.passed()) return c;
  return CheckResult::pass();
}

int pick(const Problem &p, uint32_t salt, int bound) {
  uint64_t h = hash_values(salt, p.q.seed, p.k.seed, p.v.seed, p.schedule.seed);
  return bound <= 1 ? 0 : static_cast<int>(h % static_cast<uint64_t>(bound));
}

bool bits_follow_batch(const Problem &p, const Sut &sut) {
  if (sut.kernel().determinism == ASSAY_DETERMINISM_NONE) return true;
  const assay_batch_invariance declared = sut.kernel().batch_invariance;
  return declared == ASSAY_BATCH_NONE || (declared == ASSAY_BATCH_FIXED && p.num_splits == 0);
}

} // namespace assay
