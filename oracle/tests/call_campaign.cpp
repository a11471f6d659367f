// SPDX-License-Identifier: Apache-2.0
#include "oracle/tests/call_campaign.h"

#include <algorithm>
#include <mutex>

#include "oracle/tests/tiers_compare.h"

namespace assay::oracle::test {
namespace {

constexpr int kMostKeys = 500;
constexpr size_t kMostLines = 8;

void note(CallTally &tally, uint64_t number, const std::string &what) {
  if (tally.wrong.size() < kMostLines)
    tally.wrong.push_back("call " + std::to_string(number) + ": " + what);
}

/// A row that the bodies leave open is the host's; outside there, a right kernel is refuted.
void decide_on_host(const EmulatedCall &call, const KernelModel &model, const RowHead &at,
                    uint64_t number, CallTally &tally) {
  const Report report = judge_one(call.rows, call.outputs(), model, at.row, at.head);
  ++tally.host_rows;
  tally.no_claim += report.no_claim;
  tally.violations += report.finding_count;
  tally.undecided += report.verdict == Verdict::kUndecided;
  if (report.verdict == Verdict::kInside) return;
  const ElementReport &e = report.worst;
  char line[200];
  std::snprintf(line, sizeof line,
                "row %d head %d dim %d tier %d got %.9g exact %.12g allowed %.3g", at.row, at.head,
                e.dim, e.tier, e.got, e.reference.mid, e.budget.total);
  note(tally, number, line);
}

void count(const CallDraw &draw, uint64_t judged, CallTally &tally) {
  tally.judged += judged;
  if (draw.wide) tally.wide += judged;
  if (draw.formats) tally.formats += judged;
}

/// What the passes held each output against, and what the host does.
void compare_first(const EmulatedCall &call, const std::vector<BulkElement> &elements,
                   uint64_t number, CallTally &tally) {
  TiersCompared out;
  AttentionReader reader(call.rows, call.model_without_order());
  const auto dims = static_cast<size_t>(call.rows.out.dims);
  const BulkElement *at = elements.data();
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < call.rows.out.heads; ++head, at += dims + 1) {
      const RowReference exact = attention_row(reader.problem(row, head));
      if (exact.empty) continue;
      for (size_t i = 0; i < dims; ++i)
        compare_element(at[i], exact.claim && !exact.t0[i].overflow_possible, exact.o[i],
                        exact.t0[i].total, 0, out);
      compare_element(at[dims], exact.claim, exact.lse, exact.lse_budget, 0, out);
    }
  tally.compared += out.elements;
  tally.apart += out.claims_apart + out.disjoint;
  tally.least_first = std::min(tally.least_first, out.least);
  tally.most_first = std::max(tally.most_first, out.most);
  if (out.claims_apart + out.disjoint > 0)
    note(tally, number,
         "the passes and the host disagree: " + std::to_string(out.claims_apart) + " claims, " +
             std::to_string(out.disjoint) + " enclosures");
}

void compare_every(const EmulatedCall &call, const TierReport &report, uint64_t number,
                   CallTally &tally) {
  const TiersCompared out = compare_tiers(call, report);
  const uint64_t apart = out.claims_apart + out.disjoint + out.verdicts_apart + out.ratios_apart;
  tally.compared += out.elements;
  tally.apart += apart;
  tally.least_tiers = std::min(tally.least_tiers, out.least);
  tally.most_tiers = std::max(tally.most_tiers, out.most);
  if (apart > 0) note(tally, number, "the tiers and the host disagree: " + std::to_string(apart));
}

void judge_first(Bodies &bodies, const CallDraw &draw, const EmulatedCall &call, uint64_t number,
                 bool compare, CallTally &tally) {
  std::vector<BulkElement> elements;
  const BulkReport report = bodies.first(call, compare ? &elements : nullptr);
  const auto outputs = static_cast<uint64_t>(call.rows.out.dims) + 1;
  // At least: of a row that is left open none is counted, though some may have no claim.
  count(draw, report.claimed - std::min(report.claimed, report.open_rows * outputs), tally);
  tally.no_claim += report.no_claim;
  tally.t0 = std::max(tally.t0, report.worst_ratio);
  tally.lse = std::max(tally.lse, report.worst_ratio_lse);
  for (const RowHead &at : report.open)
    decide_on_host(call, call.model_without_order(), at, number, tally);
  if (compare) compare_first(call, elements, number, tally);
}

void judge_every(Bodies &bodies, const CallDraw &draw, const EmulatedCall &call, uint64_t number,
                 bool compare, CallTally &tally) {
  const TierReport report = bodies.every(call, compare);
  count(draw, report.decided.claimed, tally);
  tally.t0 = std::max(tally.t0, report.decided.worst_ratio_t0);
  tally.t1 = std::fmax(tally.t1, report.decided.worst_ratio_t1);
  tally.t2 = std::fmax(tally.t2, report.decided.worst_ratio_t2);
  tally.lse = std::fmax(tally.lse, report.decided.worst_ratio_lse);
  for (const RowHead &at : report.open)
    decide_on_host(call, call.model, at, number, tally);
  if (compare) compare_every(call, report, number, tally);
}

} // namespace

Bodies::Bodies(Where where) {
  if (where == Where::kHere) return;
  passes_ = std::make_unique<BulkJudge>();
  tiers_ = std::make_unique<TierJudge>();
}

const std::byte *Bodies::at(const EmulatedCall &call) {
  return tiers_->upload(call.block().data(), call.block().size(), tiers_->own_stream());
}

BulkReport Bodies::first(const EmulatedCall &call, std::vector<BulkElement> *elements) {
  if (passes_) {
    static std::mutex one_at_a_time; // a kernel's limit of shared memory is the process's
    const std::lock_guard lock(one_at_a_time);
    const std::byte *base = at(call);
    return passes_->judge(call.rows_at(base), call.outputs_at(base), call.model_without_order(),
                          tiers_->own_stream(), elements);
  }
  TierReport report =
      judge_tiers_here(call.rows, call.outputs(), call.model_without_order(), elements != nullptr);
  if (elements != nullptr)
    for (const auto &tiers : report.elements)
      elements->push_back(tiers[0]);
  BulkReport out;
  const RowOutputs &o = call.rows.out;
  out.claimed = static_cast<uint64_t>(o.rows()) * static_cast<uint64_t>(o.heads * (o.dims + 1));
  out.worst_ratio = report.decided.worst_ratio_t0;
  out.worst_ratio_lse = std::fmax(0.0, report.decided.worst_ratio_lse);
  out.open_rows = report.open.size();
  out.open = std::move(report.open);
  return out;
}

TierReport Bodies::every(const EmulatedCall &call, bool elements) {
  if (!tiers_) return judge_tiers_here(call.rows, call.outputs(), call.model, elements);
  const std::byte *base = at(call);
  return tiers_->judge(call.rows_at(base), call.outputs_at(base), call.model, tiers_->own_stream(),
                       elements);
}

void CallTally::add(const CallTally &o) {
  calls += o.calls;
  refused += o.refused;
  rows += o.rows;
  emulated += o.emulated;
  judged += o.judged;
  wide += o.wide;
  formats += o.formats;
  host_rows += o.host_rows;
  no_claim += o.no_claim;
  violations += o.violations;
  undecided += o.undecided;
  t0 = std::max(t0, o.t0);
  t1 = std::max(t1, o.t1);
  t2 = std::max(t2, o.t2);
  lse = std::max(lse, o.lse);
  compared += o.compared;
  apart += o.apart;
  least_first = std::min(least_first, o.least_first);
  most_first = std::max(most_first, o.most_first);
  least_tiers = std::min(least_tiers, o.least_tiers);
  most_tiers = std::max(most_tiers, o.most_tiers);
  for (const std::string &line : o.wrong)
    if (wrong.size() < kMostLines) wrong.push_back(line);
}

void judge_drawn_call(Bodies &bodies, uint64_t seed, uint64_t number, bool compare,
                      CallTally &tally) {
  std::mt19937_64 random(seed * 1000000007 + number);
  const CallDraw draw = draw_call(random, kMostKeys);
  const EmulatedCall call(draw, random);
  ++tally.calls;
  if (!tiers_refuse(call.rows, call.model).empty()) {
    ++tally.refused;
    return;
  }
  const auto pairs = static_cast<uint64_t>(call.rows.out.rows() * call.rows.out.heads);
  tally.rows += pairs;
  tally.emulated += pairs * static_cast<uint64_t>(call.rows.out.dims + 1);
  judge_first(bodies, draw, call, number, compare, tally);
  judge_every(bodies, draw, call, number, compare, tally);
}

} // namespace assay::oracle::test
