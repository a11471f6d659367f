// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/budget.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "oracle/judge/judge.h"
#include "properties/call/params.h"
#include "properties/case/hash.h"
#include "properties/relate/compared.h"
#include "properties/relate/judged_there.h"
#include "properties/relate/outcome.h"
#include "properties/sut/oracle_call.h"

namespace assay {
namespace {

constexpr size_t kShown = 3; ///< elements in full: those of a mistake look alike

std::string describe(const oracle::ElementReport &e) {
  const oracle::BudgetTerms &b = e.budget;
  if (!oracle::is_by_interval(e.reason))
    return fmt::format("{}: got {:.9g}, {}\n", element_name(e.request, e.head, e.dim), e.got,
                       reason_text(e.reason));
  if (e.dim == oracle::ElementReport::kLse && std::isinf(e.got) &&
      e.verdict == oracle::Verdict::kInside)
    return fmt::format("{}: got {:.9g}, as of a row without keys\n",
                       element_name(e.request, e.head, e.dim), e.got);
  std::string text = fmt::format(
      "{}: got {:.9g}, exact {:.12g} +- {:.2g}, allowed {:.3g}, "
      "off by {:.3g} of it{}{}\n",
      element_name(e.request, e.head, e.dim), e.got, e.reference.mid, e.reference.rad, b.total,
      e.ratio, e.reason == oracle::Reason::kNone ? "" : ": ", reason_text(e.reason));
  if (e.dim == oracle::ElementReport::kLse) return text;
  return text + fmt::format("budget: weights {:.2g}, p_rounding {:.2g}, accumulation {:.2g}, "
                            "normalisation {:.2g}, merge {:.2g}, output_rounding {:.2g}, "
                            "flush {:.2g}\n",
                            b.weights, b.p_rounding, b.accumulation, b.normalisation, b.merge,
                            b.output_rounding, b.flush);
}

/// The value and what it should have been, in one way: by the interval, or by the reason.
std::string against(const oracle::ElementReport &e) {
  if (!oracle::is_by_interval(e.reason))
    return fmt::format("{:.9g}: {}", e.got, reason_text(e.reason));
  const bool outside = e.verdict == oracle::Verdict::kOutside;
  return fmt::format(
      "{:.9g}, {} {:.9g} +- {:.3g}{}", e.got, outside ? "outside" : "undecided against",
      e.reference.mid, e.budget.total,
      e.reason == oracle::Reason::kNone ? "" : fmt::format(" ({})", reason_text(e.reason)));
}

} // namespace

CheckResult result_of(const oracle::Report &report) {
  CheckResult out;
  count_compared(report.claimed);
  out.outputs = report.claimed;
  out.no_claim = report.no_claim;
  out.declared_away = report.declared_away;
  out.budgets = report.budgets.typical();
  out.certified_rows = report.certified_rows;
  auto number = [](double x) { return std::isnan(x) ? 0 : x; };
  out.ratio_t0 = number(report.worst_ratio_t0);
  out.ratio_t1 = number(report.worst_ratio_t1);
  out.ratio_t2 = number(report.worst_ratio_t2);
  out.ratio_lse = number(report.worst_ratio_lse);
  out.detail = "worst: " + describe(report.worst);
  out.row = report.worst.request;
  out.head = report.worst.head;
  if (report.verdict == oracle::Verdict::kInside) return out;
  const oracle::ElementReport &e = report.findings.empty() ? report.worst : report.findings[0];
  bool outside = report.verdict == oracle::Verdict::kOutside;
  out.kind = outside ? CheckResult::Kind::kFail : CheckResult::Kind::kUndecided;
  out.message = fmt::format("{} is {}", element_name(e.request, e.head, e.dim), against(e));
  out.symptom = wrong_value(e.request, e.head, e.dim, e.got, e.reference.mid, e.budget.total);
  out.row = e.request;
  out.head = e.head;
  out.detail = fmt::format("{} violations in {} elements\n", report.finding_count, report.elements);
  const size_t shown = std::min(kShown, report.findings.size());
  for (size_t i = 0; i < shown; ++i)
    out.detail += describe(report.findings[i]);
  if (shown < report.finding_count)
    out.detail += fmt::format("and {} more\n", report.finding_count - shown);
  return out;
}

namespace {

uint64_t sampling_hash(const Problem &p, int row, int head) {
  return hash_values(0xce27u, p.q.seed, p.k.seed, p.v.seed, row, head);
}

/// Which rows are recomputed in interval arithmetic: one in 64, and the first with a finding. Long
/// rows more rarely, so that they do not dominate the time: a key costs about 20 us at d = 128.
bool certify_this(const Problem &p, size_t keys, int row, int head) {
  return sampling_hash(p, row, head) % (keys <= 512 ? 64 : 1024) == 0;
}

/// The host decides as many rows of a run on a GPU again, and recomputes one in 16 of those:
/// MPFI would take most of the time otherwise.
bool certify_of_gpu(const Problem &p, size_t keys, int row, int head) {
  return certify_this(p, keys, row, head) && sampling_hash(p, row, head) / 1024 % 16 == 0;
}

/// Four dims are enough: the radii of a row's dims come from the same weights.
std::vector<int> sampled_dims(int head_dim, int row, int head) {
  const int start = static_cast<int>(hash_values(0xd1u, row, head) % head_dim);
  std::vector<int> dims(4);
  for (int i = 0; i < 4; ++i)
    dims[i] = (start + i * (head_dim / 4)) % head_dim;
  return dims;
}

oracle::CertifySample sample_of(const Problem &p) {
  return {.row = [&p](int row, int head, size_t keys) { return certify_this(p, keys, row, head); },
          .dims = [&p](int row, int head) { return sampled_dims(p.head_dim, row, head); }};
}

HostSample host_sample(const Problem &p) {
  HostSample sample;
  sample.again = [&p](int row, int head, size_t keys) { return certify_this(p, keys, row, head); };
  sample.certified = sample_of(p);
  sample.certified.row = [&p](int row, int head, size_t keys) {
    return certify_of_gpu(p, keys, row, head);
  };
  return sample;
}

oracle::CallOutputs outputs_of(const Tensors &t) {
  const auto *lse = t.lse.buffer < 0 ? nullptr : t.buffers[t.lse.buffer].bytes.data();
  return {token_0(t, t.o, t.buffers[t.o.buffer].bytes.data()),
          static_cast<const float *>(token_0(t, t.lse, lse))};
}

} // namespace

CheckResult inside_budget(const Outcome &run, Sut &sut) {
  OracleCall call = oracle_call(run.before, sut);
  call.model.replay_scores = sut.replays_scores();
  const Problem &p = run.before.problem;
  const oracle::CallOutputs outputs = outputs_of(run.after);
  if (DeviceOracle *device = sut.device_oracle())
    if (const auto report = judged_there(run, call, outputs, host_sample(p), *device))
      return result_of(*report);
  return result_of(oracle::judge_call(call.rows, outputs, call.model, sample_of(p)));
}

CheckResult same_result(const Outcome &first, const Outcome &second, Sut &sut,
                        const std::string &what) {
  if (sut.kernel().determinism != ASSAY_DETERMINISM_NONE)
    return same_bits(first.after, second.after, what);
  CheckResult result = inside_budget(second, sut);
  if (!result.message.empty()) result.message = what + ": " + result.message;
  return result;
}

} // namespace assay
