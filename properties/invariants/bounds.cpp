// SPDX-License-Identifier: Apache-2.0
#include "properties/invariants/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "oracle/judge/certify.h"
#include "oracle/judge/verdict.h"
#include "properties/hash.h"

namespace assay {
namespace {

oracle::KeyRange seen(const assay_paged_params &params, int row) {
  return oracle::visible_keys(params, row);
}
oracle::KeyRange seen(const assay_cascade_params &, int) {
  return {0, std::numeric_limits<int>::max()};
}

/// The kernel's declared key order of one query row; empty when it declares none.
template <class Params>
oracle::TileOrder declared_order(const Params &params, const Tensors &t, const assay_kernel &kernel,
                                 int row, int head) {
  const int request = row / t.problem.q_len;
  if (kernel.key_order == nullptr) return {};
  // The kernel's own target: a plan may depend on the device. The pointers stay the host's.
  Params asked = params;
  asked.target = kernel.target;
  int32_t count = 0;
  std::vector<assay_key_tile> tiles(256);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto capacity = static_cast<int32_t>(tiles.size());
    if (kernel.key_order(&asked, request, head, tiles.data(), capacity, &count) != ASSAY_OK)
      return {};
    if (count <= capacity) break;
    tiles.resize(count);
  }
  tiles.resize(count);
  // The oracle numbers keys through all levels, and splits of all levels, consecutively.
  std::map<int, int> first_key;
  int keys = 0;
  for (const KeyRun &run : key_runs(t, request)) {
    first_key[run.cache] = keys;
    keys += run.len;
  }
  std::map<std::pair<int, int>, int> split;
  oracle::TileOrder order;
  for (const assay_key_tile &tile : tiles) {
    int next = static_cast<int>(split.size());
    int at = split.try_emplace({tile.level, tile.split}, next).first->second;
    int base = first_key[tile.level];
    order.push_back({at, tile.state, base + tile.begin, base + tile.end, tile.p_parts});
  }
  const oracle::KeyRange range = seen(params, row);
  return oracle::clip_order(order, range.begin, range.end);
}

std::string describe(const oracle::ElementReport &e) {
  const oracle::BudgetTerms &b = e.budget;
  std::string text =
      fmt::format("{}: got {:.9g}, exact {:.12g} +- {:.2g}, allowed {:.3g}, "
                  "off by {:.3g} of it{}{}\n",
                  element_name(e.request, e.head, e.dim), e.got, e.reference.mid, e.reference.rad,
                  b.total, e.ratio, e.why.empty() ? "" : ": ", e.why);
  if (e.dim < 0) return text;
  return text + fmt::format("budget: weights {:.2g}, p_rounding {:.2g}, accumulation {:.2g}, "
                            "normalisation {:.2g}, merge {:.2g}, output_rounding {:.2g}, "
                            "flush {:.2g}\n",
                            b.weights, b.p_rounding, b.accumulation, b.normalisation, b.merge,
                            b.output_rounding, b.flush);
}

CheckResult from_report(const oracle::Report &report, uint64_t certified_rows) {
  CheckResult out;
  out.outputs = report.claimed;
  out.certified_rows = certified_rows;
  auto number = [](double x) { return std::isnan(x) ? 0 : x; };
  out.ratio_t0 = number(report.worst_ratio_t0);
  out.ratio_t1 = number(report.worst_ratio_t1);
  out.ratio_t2 = number(report.worst_ratio_t2);
  out.ratio_lse = number(report.worst_ratio_lse);
  out.detail = "worst: " + describe(report.worst);
  if (report.verdict == oracle::Verdict::kInside) return out;
  const oracle::ElementReport &e = report.findings.empty() ? report.worst : report.findings[0];
  bool outside = report.verdict == oracle::Verdict::kOutside;
  out.kind = outside ? CheckResult::Kind::kFail : CheckResult::Kind::kUndecided;
  out.message =
      fmt::format("{} is {:.9g}, {} {:.9g} +- {:.3g}{}", element_name(e.request, e.head, e.dim),
                  e.got, outside ? "outside" : "undecided against", e.reference.mid, e.budget.total,
                  e.why.empty() ? "" : " (" + e.why + ")");
  out.detail = fmt::format("{} violations in {} elements\n", report.finding_count, report.elements);
  for (const auto &finding : report.findings)
    out.detail += describe(finding);
  return out;
}

/// Splits a row without a declared order may be cut into: a kernel that chooses for itself may cut
/// between any two keys.
int most_splits(const Problem &p, const Sut &sut, size_t keys) {
  if (!sut.can_split()) return 1;
  int levels = p.family == Family::kCascade ? static_cast<int>(p.levels.size()) : 1;
  int most = p.num_splits > 0 ? p.num_splits * levels : 1024;
  return std::clamp(static_cast<int>(std::min<size_t>(keys, 1024)), 1, std::max(1, most));
}

template <class Params>
int declared_splits(const Params &params, const Tensors &t, const Sut &sut, int row, int head) {
  std::set<int> splits;
  for (const oracle::KeyTile &tile : declared_order(params, t, sut.kernel(), row, head))
    if (tile.begin < tile.end) splits.insert(tile.split);
  return static_cast<int>(splits.size());
}

RowBound to_bound(const oracle::RowReference &row) {
  RowBound out;
  out.claim = row.claim && row.finite_inputs;
  out.empty = row.empty && !row.sunken;
  for (size_t i = 0; i < row.o.size(); ++i) {
    out.o.push_back(row.o[i].mid);
    double total = i < row.t0.size() ? row.t0[i].total : 0;
    if (i < row.t0.size() && row.t0[i].overflow_possible) out.claim = false;
    out.o_radius.push_back(total + row.o[i].rad);
  }
  out.lse = row.lse.mid;
  out.lse_radius = row.lse_budget + row.lse.rad;
  return out;
}

/// One row as the oracle takes it, with the storage it points to.
struct AttentionRow {
  std::vector<float> q;
  oracle::KeySet sunk; ///< the keys and the sink, for rows that have one
  oracle::TileOrder order;
  oracle::RowProblem problem;
};

template <class Params>
void fill_row(AttentionRow &out, const Params &params, const oracle::KeySet &keys, const Tensors &t,
              const Sut &sut, int row, int head) {
  out.q = oracle::gather_query(params, row, head);
  out.order = declared_order(params, t, sut.kernel(), row, head);
  oracle::RowProblem &problem = out.problem;
  problem.q = out.q;
  problem.keys = &keys;
  problem.features = oracle::gather_features(params, head);
  problem.dtype = params.dtype;
  problem.sm_scale = params.sm_scale;
  problem.lse_base = params.lse_base;
  problem.arithmetic = sut.kernel().arithmetic;
  problem.max_splits = most_splits(t.problem, sut, keys.size());
  problem.combine_stages = sut.can_split() ? 1 : 0;
  if (problem.features.has_sink()) {
    out.sunk = keys.with_sink(problem.operand());
    problem.keys = &out.sunk;
    oracle::append_sink(out.order, static_cast<int>(keys.size()));
  }
  if (sut.kernel().key_order != nullptr) problem.order = &out.order;
  problem.replay_scores = sut.replays_scores();
}

template <class Params>
RowBound attention_bound(const Params &params, const oracle::KeySet &keys, const Tensors &t,
                         const Sut &sut, int row, int head) {
  AttentionRow r;
  fill_row(r, params, keys, t, sut, row, head);
  r.problem.replay_scores = false; // relations use T0
  return to_bound(oracle::attention_row(r.problem));
}

/// Which rows are recomputed in interval arithmetic: one in 64, and the first with a finding. Long
/// rows more rarely, so that they do not dominate the time: a key costs about 20 us at d = 128.
bool certify_this(const Problem &p, size_t keys, int row, int head) {
  const uint64_t h = hash_values(0xce27u, p.q.seed, p.k.seed, p.v.seed, row, head);
  return h % (keys <= 512 ? 64 : 1024) == 0;
}

/// Four dims are enough: the radii of a row's dims come from the same weights.
std::array<int, 4> sampled_dims(int head_dim, int row, int head) {
  const int start = static_cast<int>(hash_values(0xd1u, row, head) % head_dim);
  std::array<int, 4> dims;
  for (int i = 0; i < 4; ++i)
    dims[i] = (start + i * (head_dim / 4)) % head_dim;
  return dims;
}

/// An oracle that is wrong proves nothing about the kernel: the run ends as a harness error.
void require_certified(const oracle::Certification &c, int row, int head) {
  if (c.misses > 0)
    throw std::logic_error(fmt::format("oracle: row {} head {} {}", row, head, c.first_miss));
}

struct Judged {
  oracle::Report report;
  uint64_t certified_rows = 0;
};

/// Every row and head against its reference; one gather per kv head.
template <class Params, class Gather>
Judged check_attention(const Params &params, const Outcome &run, const Sut &sut, Gather gather) {
  const Tensors &after = run.after;
  const Problem &p = after.problem;
  Judged out;
  std::vector<float> o(p.head_dim);
  for (int row = 0; row < after.rows(); ++row)
    for (int kv_head = 0; kv_head < p.num_kv_heads; ++kv_head) {
      oracle::KeySet keys = gather(params, row, kv_head);
      for (int head = kv_head * p.group_size; head < (kv_head + 1) * p.group_size; ++head) {
        AttentionRow r;
        fill_row(r, params, keys, run.before, sut, row, head);
        for (int i = 0; i < p.head_dim; ++i)
          o[i] = after.out_o(row, head, i);
        float lse = p.has_lse ? after.out_lse(row, head) : 0;
        const oracle::RowReference reference = oracle::attention_row(r.problem);
        oracle::Report report = oracle::judge_row(r.problem, reference, o.data(),
                                                  p.has_lse ? &lse : nullptr, row, head);
        const bool first_finding = report.verdict != oracle::Verdict::kInside &&
                                   out.report.verdict == oracle::Verdict::kInside;
        if (first_finding || certify_this(p, keys.size(), row, head)) {
          require_certified(
              oracle::certify_row(r.problem, reference, sampled_dims(p.head_dim, row, head)), row,
              head);
          ++out.certified_rows;
        }
        out.report.merge(report);
      }
    }
  return out;
}

oracle::MergeProblem merge_problem(const Outcome &run, const Sut &sut, int row, int head) {
  const Tensors &t = run.before;
  const Problem &p = t.problem;
  oracle::MergeProblem problem;
  problem.head_dim = p.head_dim;
  problem.dtype = static_cast<assay_dtype>(p.dtype);
  problem.lse_base = p.lse_base == LseBase::kNatural ? ASSAY_LSE_NATURAL : ASSAY_LSE_BASE2;
  problem.arithmetic = sut.kernel().arithmetic;
  auto add = [&](int side, int state) {
    problem.lse.push_back(t.value(t.in_lse[side], state, head));
    for (int i = 0; i < p.head_dim; ++i)
      problem.o.push_back(t.value(t.in_o[side], state, head, i));
  };
  if (p.family == Family::kMergeState) {
    add(0, row);
    add(1, row);
  } else {
    for (int s = t.first_state[row]; s < t.first_state[row + 1]; ++s)
      add(0, s);
  }
  return problem;
}

/// Of a merge whose report is there already.
Judged certify_merges(oracle::Report report, const Outcome &run, const Sut &sut) {
  Judged out{std::move(report), 0};
  const Problem &p = run.before.problem;
  const bool finding = out.report.verdict != oracle::Verdict::kInside;
  for (int row = 0; row < run.before.rows(); ++row)
    for (int head = 0; head < run.before.heads(); ++head) {
      const bool worst =
          finding && out.report.worst.request == row && out.report.worst.head == head;
      if (!worst && !certify_this(p, 0, row, head)) continue;
      const oracle::MergeProblem problem = merge_problem(run, sut, row, head);
      require_certified(oracle::certify_merge(problem, oracle::merge_row(problem),
                                              sampled_dims(p.head_dim, row, head)),
                        row, head);
      ++out.certified_rows;
    }
  return out;
}

RowBound merge_bound(const Outcome &run, const Sut &sut, int row, int head) {
  const Problem &p = run.before.problem;
  const oracle::MergeProblem problem = merge_problem(run, sut, row, head);
  oracle::MergeReference reference = oracle::merge_row(problem);
  RowBound bound = to_bound(reference.row);
  if (reference.only_state < 0) return bound;
  // One live state: its bits, no error at all.
  bound.o_radius.assign(p.head_dim, 0.0);
  for (int i = 0; i < p.head_dim; ++i)
    bound.o[i] = problem.o[static_cast<size_t>(reference.only_state) * p.head_dim + i];
  bound.lse = problem.lse[reference.only_state];
  bound.lse_radius = 0;
  return bound;
}

} // namespace

CheckResult inside_budget(const Outcome &run, const Sut &sut) {
  Tensors before = run.before, after = run.after;
  AbiParams params = oracle_params(before, after);
  const assay_arithmetic &arithmetic = sut.kernel().arithmetic;
  Judged judged;
  switch (params.family) {
  case Family::kPaged:
    judged = check_attention(params.paged, run, sut, oracle::gather_paged);
    break;
  case Family::kCascade:
    judged = check_attention(params.cascade, run, sut, oracle::gather_cascade);
    break;
  case Family::kMergeState:
    judged = certify_merges(oracle::check_merge_state(params.merge_state, arithmetic), run, sut);
    break;
  case Family::kMergeStates:
    judged = certify_merges(oracle::check_merge_states(params.merge_states, arithmetic), run, sut);
    break;
  }
  return from_report(judged.report, judged.certified_rows);
}

int row_splits(const Outcome &run, const Sut &sut, int row, int head) {
  auto &before = const_cast<Tensors &>(run.before);
  AbiParams params = make_params(before, host_addresses(before), ASSAY_TARGET_SIMT, nullptr);
  const Problem &p = before.problem;
  int declared = p.family == Family::kPaged
                     ? declared_splits(params.paged, before, sut, row, head)
                     : declared_splits(params.cascade, before, sut, row, head);
  if (declared > 0) return declared;
  return most_splits(p, sut, static_cast<size_t>(visible_count(p, row)));
}

OracleRow oracle_row(const Outcome &run, const Sut &sut, int row, int head) {
  auto &before = const_cast<Tensors &>(run.before);
  AbiParams params = make_params(before, host_addresses(before), ASSAY_TARGET_SIMT, nullptr);
  int kv_head = head / before.problem.group_size;
  OracleRow out;
  AttentionRow r;
  if (before.problem.family == Family::kPaged) {
    out.keys = oracle::gather_paged(params.paged, row, kv_head);
    fill_row(r, params.paged, out.keys, before, sut, row, head);
  } else {
    out.keys = oracle::gather_cascade(params.cascade, row, kv_head);
    fill_row(r, params.cascade, out.keys, before, sut, row, head);
  }
  r.problem.replay_scores = true;
  out.reference = oracle::attention_row(r.problem);
  out.q = r.q;
  return out;
}

RowBound row_bound(const Outcome &run, const Sut &sut, int row, int head) {
  const Problem &p = run.before.problem;
  if (is_merge(p)) return merge_bound(run, sut, row, head);
  // The parameters only lend pointers; nothing is written through them.
  auto &before = const_cast<Tensors &>(run.before);
  AbiParams params = make_params(before, host_addresses(before), ASSAY_TARGET_SIMT, nullptr);
  int kv_head = head / p.group_size;
  if (p.family == Family::kPaged)
    return attention_bound(params.paged, oracle::gather_paged(params.paged, row, kv_head), before,
                           sut, row, head);
  return attention_bound(params.cascade, oracle::gather_cascade(params.cascade, row, kv_head),
                         before, sut, row, head);
}

double comparable(float x, Dtype dtype) {
  if (!std::isinf(x)) return x;
  double largest = largest_finite(dtype);
  // Half the last place beyond the largest finite value.
  double threshold = dtype == Dtype::kFp16 ? 65520.0 : dtype == Dtype::kBf16 ? 0x1.ffp127 : largest;
  return x < 0 ? -threshold : threshold;
}

CheckResult within(double got, double want, double radius, const std::string &element,
                   const std::string &what) {
  // Differences of doubles near fp32 values: their own rounding is below 2^-50 of the operands.
  double rounding = (std::fabs(got) + std::fabs(want)) * 0x1p-50;
  if (std::fabs(got - want) <= radius + rounding) return CheckResult::pass();
  if (std::isinf(radius)) return CheckResult::pass(); // nothing is claimed
  return CheckResult::fail(
      fmt::format("{}: {} is {:.9g}, allowed {:.9g} +- {:.3g}", what, element, got, want, radius));
}

namespace {

/// Zero of either sign (a negative v_scale makes it negative) and -inf.
CheckResult empty_row(const Tensors &t, int row, int head, const std::string &what) {
  bool empty = true;
  for (int i = 0; i < t.problem.head_dim; ++i)
    empty = empty && t.out_o(row, head, i) == 0.0f;
  if (t.lse.buffer >= 0) empty = empty && t.out_lse(row, head) == -INFINITY;
  if (empty) return CheckResult::pass();
  return CheckResult::fail(
      fmt::format("{}: row {} head {} has no keys and is not empty", what, row, head));
}

} // namespace

CheckResult related(const Outcome &a, int row_a, int head_a, const Outcome &b, int row_b,
                    int head_b, const Relation &relation, const Sut &sut, const std::string &what) {
  RowBound x = row_bound(a, sut, row_a, head_a), y = row_bound(b, sut, row_b, head_b);
  if (!x.claim || !y.claim) return CheckResult::pass();
  if (x.empty || y.empty) return empty_row(b.after, row_b, head_b, what);
  for (int i = 0; i < a.before.problem.head_dim; ++i) {
    Dtype dtype = a.before.problem.dtype;
    double want =
        relation.scale * comparable(a.after.out_o(row_a, head_a, i), dtype) + relation.offset;
    double radius = std::fabs(relation.scale) * x.o_radius[i] + y.o_radius[i] +
                    relation.o_slack * std::fabs(want);
    CheckResult c = within(comparable(b.after.out_o(row_b, head_b, i), dtype), want, radius,
                           element_name(row_b, head_b, i), what);
    if (!c.passed()) return c;
  }
  if (a.after.lse.buffer < 0 || b.after.lse.buffer < 0) return CheckResult::pass();
  return within(
      b.after.out_lse(row_b, head_b), a.after.out_lse(row_a, head_a) + relation.lse_offset,
      x.lse_radius + y.lse_radius + relation.lse_slack, element_name(row_b, head_b, -1), what);
}

CheckResult all_related(const Outcome &a, const Outcome &b, const Relation &relation,
                        const Sut &sut, const std::string &what) {
  return all_related(
      a, b, [&](int) { return relation; }, sut, what);
}

CheckResult all_related(const Outcome &a, const Outcome &b,
                        const std::function<Relation(int head)> &relation, const Sut &sut,
                        const std::string &what) {
  for (int r = 0; r < a.before.rows(); ++r)
    for (int h = 0; h < a.before.heads(); ++h)
      if (CheckResult c = related(a, r, h, b, r, h, relation(h), sut, what); !c.passed()) return c;
  return CheckResult::pass();
}

} // namespace assay
