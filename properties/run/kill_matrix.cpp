// SPDX-License-Identifier: Apache-2.0
#include "properties/run/kill_matrix.h"

#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "oracle/judge/usual_rules.h"
#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

/// What a correct kernel returns for one (request, head), and what it may return.
struct Expected {
  std::vector<double> exact, plain; ///< of one request: all its heads
  std::vector<RowBound> t0, t1, t2; ///< per head; an empty `o` does not apply
};

/// An input, drawn once and given to every subject of a kernel.
struct Input {
  Problem problem;
  std::vector<Expected> requests;
};

Problem normal_problem(const assay_kernel &kernel, const KillOptions &options, int run) {
  Problem p;
  p.family = static_cast<Family>(kernel.family);
  p.head_dim = 64;
  auto seed = static_cast<uint32_t>(options.seed * 1000003 + run);
  p.q = {Regime::kNormal, 0, seed + 1};
  p.k = {Regime::kNormal, 0, seed + 2};
  p.v = {Regime::kNormal, 0, seed + 3};
  if (is_merge(p)) {
    p.batch = 4;
    p.dtype = Dtype::kFp32; // what split kernels keep their partials in
    p.num_kv_heads = 8;
    // More than one worker, and not a multiple of what one takes.
    p.num_states = p.family == Family::kMergeState ? 2 : options.splits + 19;
    p.lse_regime = LseRegime::kSomeEmpty;
    return p;
  }
  // What mutants need to differ at all: several heads of both kinds, moved pages, a pool beyond
  // 2^32 elements, a request without keys, a level that does not cover every request.
  p.num_kv_heads = 2;
  p.group_size = 4;
  p.page_size = 16;
  p.placement = Placement::kShuffled;
  p.placement_seed = seed;
  p.huge_pool = true;
  p.num_splits = options.splits;
  p.batch = 2;
  if (p.family == Family::kPaged) {
    p.seq_lens = {options.keys, 0};
    return p;
  }
  // Segments of 36, 16 and 4 query rows, in the splits that the kernel chooses.
  p.batch = 9;
  p.num_splits = 0;
  const int many = options.keys, some = options.keys / 4, few = options.keys / 8;
  p.levels = {{16, 0, {9}, {many}},
              {16, 0, {4, 4}, {some, some + 3}},
              {16, 0, {1, 1, 1, 1, 1, 1, 1, 1}, {few, 0, 1, few + 1, few, 2, few, few}}};
  return p;
}

RowBound to_bound(const std::vector<oracle::Enclosure> &o,
                  const std::vector<oracle::BudgetTerms> &budget) {
  RowBound out;
  for (size_t i = 0; i < o.size(); ++i) {
    out.o.push_back(o[i].mid);
    out.o_radius.push_back((i < budget.size() ? budget[i].total : 0) + o[i].rad);
  }
  return out;
}

/// The plain run of a merge: weights rounded to the element type, like plain_attention.
std::vector<double> plain_merge(const Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  bool pair = p.family == Family::kMergeState;
  int first = pair ? 0 : t.first_state[row], last = pair ? 2 : t.first_state[row + 1];
  auto state = [&](int s) { return std::pair(pair ? s : 0, pair ? row : s); };
  auto lse = [&](int s) { return t.value(t.in_lse[state(s).first], state(s).second, head); };
  double sum = 0;
  for (int s = first; s < last; ++s)
    sum += std::exp(double(lse(s)));
  std::vector<double> out(p.head_dim, 0);
  for (int s = first; s < last && sum > 0; ++s) {
    float weight = from_bits(p.dtype, to_bits(p.dtype, std::exp(lse(s)) / float(sum)));
    if (weight == 0) continue; // the o of an empty state is no number
    for (int i = 0; i < p.head_dim; ++i)
      out[i] += double(weight) * t.value(t.in_o[state(s).first], state(s).second, head, i);
  }
  for (double &x : out)
    x = from_bits(p.dtype, to_bits(p.dtype, static_cast<float>(x)));
  return out;
}

void expect_head(Expected &e, RunBounds &bounds, int row, int head, bool replay_scores) {
  const Tensors &inputs = bounds.run().before;
  const Problem &p = inputs.problem;
  std::vector<double> plain;
  if (is_merge(p)) {
    e.t0.push_back(bounds.row(row, head));
    e.t1.emplace_back();
    e.t2.emplace_back();
    plain = plain_merge(inputs, row, head);
  } else {
    OracleRow r = bounds.every_tier(row, head, replay_scores);
    e.t0.push_back(to_bound(r.reference.o, r.reference.t0));
    e.t0.back().lse = r.reference.lse.mid;
    e.t0.back().lse_radius = r.reference.lse_budget + r.reference.lse.rad;
    e.t0.back().empty = r.reference.empty;
    e.t1.push_back(to_bound(r.reference.t1.o, r.reference.t1.budget));
    e.t2.push_back(to_bound(r.reference.t2.o, r.reference.t2.budget));
    e.t2.back().lse = r.reference.t2.lse.mid;
    e.t2.back().lse_radius = r.reference.t2.lse_budget + r.reference.t2.lse.rad;
    plain = oracle::plain_attention(r.q, *r.keys, sm_scale(p), static_cast<assay_dtype>(p.dtype));
  }
  RowBound &bound = e.t0.back();
  if (bound.o.empty()) bound.o.assign(p.head_dim, 0);
  bound.o_radius.resize(p.head_dim, 0);
  if (bound.empty) plain.assign(p.head_dim, 0);
  e.exact.insert(e.exact.end(), bound.o.begin(), bound.o.end());
  e.plain.insert(e.plain.end(), plain.begin(), plain.end());
}

Input make_input(const assay_kernel &kernel, const KillOptions &options, int run) {
  Input input{normal_problem(kernel, options, run), {}};
  auto sut = make_simt_sut(kernel);
  Tensors t = materialise(input.problem);
  Outcome inputs{t, t, {}};
  RunBounds bounds(inputs, *sut);
  for (int row = 0; row < t.rows(); ++row) {
    Expected e;
    for (int head = 0; head < t.heads(); ++head)
      expect_head(e, bounds, row, head, options.replay_scores);
    input.requests.push_back(std::move(e));
  }
  return input;
}

bool outside(const RowBound &bound, std::span<const float> got, Dtype dtype) {
  for (size_t i = 0; i < bound.o.size(); ++i)
    if (!(std::fabs(comparable(got[i], dtype) - bound.o[i]) <= bound.o_radius[i])) return true;
  return false;
}

bool lse_outside(const RowBound &bound, float got) {
  if (bound.empty) return !(std::isinf(got) && got < 0);
  return !(std::fabs(got - bound.lse) <= bound.lse_radius);
}

using Verdicts = std::array<bool, kKillColumns>;

void judge_request(const Expected &e, const Tensors &out, int row, Verdicts &killed) {
  const size_t dim = out.problem.head_dim;
  std::vector<float> o;
  for (int head = 0; head < out.heads(); ++head)
    for (size_t i = 0; i < dim; ++i)
      o.push_back(out.out_o(row, head, static_cast<int>(i)));
  auto dtype = static_cast<assay_dtype>(out.problem.dtype);
  killed[kClose2] |= !oracle::all_close(o, e.exact, 1e-2);
  killed[kClose3] |= !oracle::all_close(o, e.exact, 1e-3);
  killed[kMostly] |= !oracle::mostly_close(o, e.exact);
  killed[kTwice] |= !oracle::within_twice_plain(o, e.exact, e.plain, dtype);
  for (int head = 0; head < out.heads(); ++head) {
    std::span<const float> got(o.data() + head * dim, dim);
    killed[kTier0] |= outside(e.t0[head], got, out.problem.dtype);
    killed[kTier1] |= outside(e.t1[head], got, out.problem.dtype);
    killed[kTier2] |= outside(e.t2[head], got, out.problem.dtype);
    killed[kLse] |= lse_outside(e.t0[head], out.out_lse(row, head));
    if (!e.t2[head].o.empty()) killed[kLse] |= lse_outside(e.t2[head], out.out_lse(row, head));
  }
}

/// One run of one subject, already active.
void score(KillRow &row, const Input &input, Sut &sut, bool replay_scores) {
  Tensors t = materialise(input.problem);
  RunResult result = sut.run(t);
  Verdicts killed{}, judged{};
  judged[kHazards] = judged[kAnyOfOurs] = true;
  killed[kHazards] = !result.hazards.empty() || !result.violations.empty();
  if (result.hazards.empty() && result.status == ASSAY_OK) {
    for (size_t r = 0; r < input.requests.size(); ++r)
      judge_request(input.requests[r], t, static_cast<int>(r), killed);
    bool tiers = is_attention(input.problem);
    for (int c = kClose2; c <= kLse; ++c)
      judged[c] = c == kTier2 ? tiers && replay_scores : tiers || c != kTier1;
    if (tiers) {
      CheckResult dyadic = dyadic_exact(input.problem, sut);
      judged[kDyadic] = dyadic.passed() || dyadic.failed();
      killed[kDyadic] = dyadic.failed();
    }
    CheckResult algebra = algebra_exact(input.problem, sut);
    judged[kAlgebra] = algebra.passed() || algebra.failed();
    killed[kAlgebra] = algebra.failed();
  }
  for (int c = kTier0; c < kAnyOfOurs; ++c)
    killed[kAnyOfOurs] |= killed[c];
  ++row.runs;
  for (int c = 0; c < kKillColumns; ++c) {
    row.judged[c] += judged[c];
    row.killed[c] += killed[c];
  }
}

void add_runs(std::vector<KillRow> &rows, const std::function<void(int)> &activate,
              const KillOptions &options, int first, int step) {
  for (int run = first; run < options.runs; run += step) {
    std::map<const assay_kernel *, Input> inputs;
    for (KillRow &row : rows) {
      const assay_kernel &kernel = *row.subject.kernel;
      activate(0);
      if (!inputs.contains(&kernel)) inputs[&kernel] = make_input(kernel, options, run);
      auto sut = make_simt_sut(kernel);
      activate(row.subject.id);
      score(row, inputs[&kernel], *sut, options.replay_scores);
      activate(0);
    }
  }
}

} // namespace

std::vector<KillRow> kill_matrix(const std::vector<KillSubject> &subjects,
                                 const std::function<void(int id)> &activate,
                                 const KillOptions &options) {
  std::vector<KillRow> total;
  for (const KillSubject &s : subjects)
    total.push_back({s, 0, {}, {}});
  std::mutex lock;
  auto work = [&](int first) {
    std::vector<KillRow> mine;
    for (const KillSubject &s : subjects)
      mine.push_back({s, 0, {}, {}});
    add_runs(mine, activate, options, first, options.threads);
    std::lock_guard guard(lock);
    for (size_t i = 0; i < mine.size(); ++i) {
      total[i].runs += mine[i].runs;
      for (int c = 0; c < kKillColumns; ++c) {
        total[i].judged[c] += mine[i].judged[c];
        total[i].killed[c] += mine[i].killed[c];
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options.threads; ++i)
    threads.emplace_back(work, i);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  return total;
}

} // namespace assay
