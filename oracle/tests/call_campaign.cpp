// SPDX-License-Identifier: Apache-2.0
#include "oracle/tests/call_campaign.h"

#include <algorithm>
#include <mutex>

#include "oracle/tests/along_error.h"

namespace assay::oracle::test {
namespace {

constexpr int kMostKeys = 500;
constexpr size_t kMostLines = 4;                      // lines of a kind
constexpr double kNarrow = 1.0 - 1e-6, kWide = 1.001; // budgets, of the host's

void note(CallTally &tally, const std::string &kind, const std::string &what) {
  std::vector<std::string> &lines = tally.wrong[kind];
  if (lines.size() < kMostLines) lines.push_back(what);
}

/// Where something is wrong, to find it again.
struct Place {
  uint64_t number; ///< number of the call
  const char *regime;
  int row, head, dim, tier;

  std::string text() const {
    return "call " + std::to_string(number) + " (" + regime + ") row " + std::to_string(row) +
           " head " + std::to_string(head) + " dim " + std::to_string(dim) + " T" +
           std::to_string(tier);
  }
};

std::string with_numbers(const Place &place, const char *format, double a, double b, double c) {
  char numbers[120];
  std::snprintf(numbers, sizeof numbers, format, a, b, c);
  return place.text() + numbers;
}

/// A row that the bodies leave open is the host's; outside there, a right kernel is refuted.
void decide_on_host(const CallDraw &draw, const EmulatedCall &call, const KernelModel &model,
                    const RowHead &at, uint64_t number, CallTally &tally) {
  const Report report = judge_one(call.rows, call.outputs(), model, at.row, at.head);
  ++tally.host_rows;
  tally.no_claim += report.no_claim;
  if (report.verdict == Verdict::kInside) return;
  // One output outside makes the row so: the findings of an undecided row are all undecided.
  const bool undecided = report.verdict == Verdict::kUndecided;
  (undecided ? tally.undecided : tally.violations) += report.finding_count;
  const ElementReport &e = report.worst;
  const Place place{number, regime_name(draw.lists[static_cast<size_t>(at.row)].regime),
                    at.row, at.head,
                    e.dim,  e.tier};
  note(tally, undecided ? "undecided" : "violations",
       with_numbers(place, ": got %.9g, exact %.12g, allowed %.3g", e.got, e.reference.mid,
                    e.budget.total));
}

void count(const CallDraw &draw, uint64_t judged, CallTally &tally) {
  tally.judged += judged;
  if (draw.wide) tally.wide += judged;
  if (draw.formats) tally.formats += judged;
}

/// How a body's bounds lie beside the host's.
struct Beside {
  const char *body;
  double least = INFINITY, most = 0.0; ///< budgets over the host's
  std::string widest = {};             ///< where `most` was seen
};

void compare_bound(const ElementBounds &got, bool claim, const Enclosure &exact, double bound,
                   const Place &place, Beside &beside, CallTally &tally) {
  const std::string body = beside.body;
  if (std::isnan(got.bound)) {
    if (!claim) return;
    ++tally.fewer_claims;
    return note(tally, body + ": no claim where the host has one", place.text());
  }
  if (!claim) {
    ++tally.apart;
    return note(tally, body + ": a claim where the host has none", place.text());
  }
  ++tally.compared;
  if (std::isinf(bound) && std::isinf(got.bound)) return;
  const double ratio = got.bound / bound;
  if (!(std::fabs(got.mid - exact.mid) <= got.rad + exact.rad)) {
    ++tally.apart;
    note(tally, body + ": enclosures that do not meet",
         with_numbers(place, ": %.17g, host %.17g, radius %.3g", got.mid, exact.mid, got.rad));
  }
  beside.least = std::min(beside.least, ratio);
  if (ratio > std::max(beside.most, kWide))
    beside.widest = with_numbers(place, ": %.9g, host %.9g of %.3g", got.bound, bound, exact.mid);
  beside.most = std::max(beside.most, ratio);
  tally.narrower += ratio < kNarrow;
  tally.wider += ratio > kWide;
  if (ratio < kNarrow || ratio > kWide)
    note(tally, body + (ratio < 1.0 ? ": narrower than the host's" : ": wider than the host's"),
         with_numbers(place, ": %.9g, host %.9g of %.3g", got.bound, bound, exact.mid));
}

/// `bound_at(pair, dim, tier)`: what the body held an output against; dim = dims: the LSE.
/// Rows that the body leaves to the host, `open`, are held against nothing there.
template <class BoundAt>
void compare_bounds(const CallDraw &draw, const EmulatedCall &call, const KernelModel &model,
                    const std::vector<RowHead> &open, uint64_t number, BoundAt bound_at,
                    Beside &beside, CallTally &tally) {
  AttentionReader reader(call.rows, model);
  const int dims = call.rows.out.dims;
  size_t pair = 0;
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < call.rows.out.heads; ++head, ++pair) {
      if (std::any_of(open.begin(), open.end(),
                      [&](const RowHead &at) { return at.row == row && at.head == head; }))
        continue;
      const RowReference exact = attention_row(reader.problem(row, head));
      if (exact.empty) continue;
      const char *regime = regime_name(draw.lists[static_cast<size_t>(row)].regime);
      const auto compare = [&](int dim, int tier, bool claim, const Enclosure &of_host,
                               double bound) {
        compare_bound(bound_at(pair, dim, tier), claim, of_host, bound,
                      {number, regime, row, head, dim == dims ? -1 : dim, tier}, beside, tally);
      };
      for (int dim = 0; dim < dims; ++dim) {
        const auto i = static_cast<size_t>(dim);
        compare(dim, 0, exact.claim && !exact.t0[i].overflow_possible, exact.o[i],
                exact.t0[i].total);
        if (exact.claim && exact.t1.applies())
          compare(dim, 1, true, exact.t1.o[i], exact.t1.budget[i].total);
        if (exact.claim && exact.t2.applies())
          compare(dim, 2, true, exact.t2.o[i], exact.t2.budget[i].total);
      }
      compare(dims, 0, exact.claim, exact.lse, exact.lse_budget);
    }
}

/// Rows as one, of those that the body decides.
void compare_as_one(const EmulatedCall &call, const KernelModel &model, const TierReport &report,
                    uint64_t number, CallTally &tally) {
  AttentionReader reader(call.rows, model);
  const CallOutputs outputs = call.outputs();
  size_t pair = 0;
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < call.rows.out.heads; ++head, ++pair) {
      const TierRow &ours = report.rows[pair];
      if (ours.inside == 0) continue;
      const RowProblem &problem = reader.problem(row, head);
      const Written written = read_outputs(call.rows.out, outputs, {}, row, head);
      const AlongOfHost host =
          along_error(problem.keys->v.data(), attention_row(problem), written.o);
      tally.as_one += ours.worst[4] >= 0.0;
      if (same_as_one(ours, host)) continue;
      ++tally.apart;
      char numbers[80];
      std::snprintf(numbers, sizeof numbers, ": %.9g, host %.9g", ours.worst[4], host.ratio);
      note(tally, "rows as one that are judged otherwise",
           "call " + std::to_string(number) + " row " + std::to_string(row) + " head " +
               std::to_string(head) + numbers);
    }
}

void compare_first(const CallDraw &draw, const EmulatedCall &call, const TierReport &report,
                   uint64_t number, CallTally &tally) {
  Beside beside{"the first tier"};
  compare_as_one(call, call.model_without_order(), report, number, tally);
  const auto outputs = static_cast<size_t>(call.rows.out.dims) + 1;
  compare_bounds(
      draw, call, call.model_without_order(), report.open, number,
      [&](size_t pair, int dim, int) {
        return report.elements[pair * outputs + static_cast<size_t>(dim)][0];
      },
      beside, tally);
  tally.least_first = std::min(tally.least_first, beside.least);
  if (beside.most > tally.most_first) tally.widest_first = beside.widest;
  tally.most_first = std::max(tally.most_first, beside.most);
}

void compare_every(const CallDraw &draw, const EmulatedCall &call, const TierReport &report,
                   uint64_t number, CallTally &tally) {
  Beside beside{"tiers"};
  compare_as_one(call, call.model, report, number, tally);
  const auto outputs = static_cast<size_t>(call.rows.out.dims) + 1;
  compare_bounds(
      draw, call, call.model, {}, number,
      [&](size_t pair, int dim, int tier) {
        return report
            .elements[pair * outputs + static_cast<size_t>(dim)][static_cast<size_t>(tier)];
      },
      beside, tally);
  tally.least_tiers = std::min(tally.least_tiers, beside.least);
  tally.most_tiers = std::max(tally.most_tiers, beside.most);
  const int heads = call.rows.out.heads;
  for (size_t pair = 0; pair < report.rows.size(); ++pair) {
    if (report.rows[pair].inside == 0) continue; // the host's
    const int row = static_cast<int>(pair) / heads, head = static_cast<int>(pair) % heads;
    const Report host = judge_one(call.rows, call.outputs(), call.model, row, head);
    if (host.verdict == Verdict::kInside && host.no_claim == 0) continue;
    ++tally.apart;
    note(tally, "tiers: inside there alone",
         "call " + std::to_string(number) + " row " + std::to_string(row) + " head " +
             std::to_string(head));
  }
}

void judge_first(Bodies &bodies, const CallDraw &draw, const EmulatedCall &call, uint64_t number,
                 bool compare, CallTally &tally) {
  const TierReport report = bodies.first(call, compare);
  count(draw, report.decided.claimed, tally);
  tally.t0 = std::max(tally.t0, report.decided.worst_ratio_t0);
  tally.lse = std::fmax(tally.lse, report.decided.worst_ratio_lse);
  tally.row = std::fmax(tally.row, report.decided.worst_ratio_row);
  tally.near += report.near.size();
  for (const RowHead &at : report.open)
    decide_on_host(draw, call, call.model_without_order(), at, number, tally);
  if (compare) compare_first(draw, call, report, number, tally);
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
    decide_on_host(draw, call, call.model, at, number, tally);
  if (compare) compare_every(draw, call, report, number, tally);
}

} // namespace

Bodies::Bodies(Where where) {
  if (where == Where::kGpu) tiers_ = std::make_unique<TierJudge>();
}

TierReport Bodies::judge(const EmulatedCall &call, const KernelModel &model,
                         const JudgeOptions &options) {
  if (!tiers_) return judge_tiers_here(call.rows, call.outputs(), model, options);
  const std::byte *base =
      tiers_->upload(call.block().data(), call.block().size(), tiers_->own_stream());
  return tiers_->judge(call.rows_at(base), call.outputs_at(base), model, tiers_->own_stream(),
                       options);
}

TierReport Bodies::first(const EmulatedCall &call, bool elements) {
  return judge(call, call.model_without_order(), {.elements = elements});
}

TierReport Bodies::every(const EmulatedCall &call, bool elements) {
  return judge(call, call.model, {.elements = elements});
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
  row = std::max(row, o.row);
  near += o.near;
  as_one += o.as_one;
  compared += o.compared;
  apart += o.apart;
  fewer_claims += o.fewer_claims;
  narrower += o.narrower;
  wider += o.wider;
  if (o.most_first > most_first) widest_first = o.widest_first;
  least_first = std::min(least_first, o.least_first);
  most_first = std::max(most_first, o.most_first);
  least_tiers = std::min(least_tiers, o.least_tiers);
  most_tiers = std::max(most_tiers, o.most_tiers);
  for (const auto &[kind, lines] : o.wrong)
    for (const std::string &line : lines)
      note(*this, kind, line);
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
