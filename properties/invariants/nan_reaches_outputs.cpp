// SPDX-License-Identifier: Apache-2.0
// Property: NaN in a row's own inputs reaches every output that it takes part in, as the kernel
// declares (nan_contract; "Not a number" in kernels/abi/assay.h). Catches: maxima and guards that
// drop NaN, splits and tiles of nothing but NaN taken for empty, weights of 0 for NaN. Known value:
// NaN, and what a row without keys returns. Values meet q = 0, so that every key weighs the same;
// without ALiBi and sinks, which could leave one without weight.
#include <algorithm>
#include <cmath>

#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/compared.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

enum class Place { kValue, kKey, kQuery };

/// What is poisoned: a value, a run of keys, or a query of one request and kv head.
struct Poisoned {
  Place place;
  int request, kv_head, dim;
  int row = 0, head = 0;        ///< of the query
  int cache = 0, table_row = 0; ///< of the keys
  int begin = 0, end = 0;       ///< tokens
};

uint32_t nan_bits(Dtype dtype) { return poison_bits(Poison::kNan, dtype, 0); }

CheckResult missing(const std::string &what, int row, int head, int dim) {
  return CheckResult::fail(what + ": " + element_name(row, head, dim) + " is a number",
                           wrong_element(Symptom::Kind::kNanLost, row, head, dim));
}

CheckResult all_nan(const Tensors &t, int row, int head, const std::string &what) {
  count_compared(static_cast<uint64_t>(t.problem.head_dim));
  for (int i = 0; i < t.problem.head_dim; ++i)
    if (!std::isnan(t.out_o(row, head, i))) return missing(what, row, head, i);
  if (t.lse.buffer >= 0 && !std::isnan(t.out_lse(row, head))) return missing(what, row, head, -1);
  return CheckResult::pass();
}

/// A row without keys.
CheckResult empty(const Tensors &t, int row, int head) {
  count_compared(static_cast<uint64_t>(t.problem.head_dim));
  bool holds = t.lse.buffer < 0 || t.out_lse(row, head) == -INFINITY;
  for (int i = 0; i < t.problem.head_dim; ++i)
    holds = holds && t.out_o(row, head, i) == 0.0f;
  return holds ? CheckResult::pass()
               : CheckResult::fail("NaN query: a row without keys is not empty: " +
                                       element_name(row, head, -1),
                                   wrong_element(Symptom::Kind::kNotEmpty, row, head, -1));
}

bool sees(const Tensors &t, int row, const Poisoned &bad) {
  for (const VisibleRun &run : visible_runs(t, row))
    // A window may leave nothing of a shard, at a place between its keys.
    if (run.cache == bad.cache && run.row == bad.table_row && run.begin < run.end &&
        run.begin < bad.end && bad.begin < run.end)
      return true;
  return false;
}

Place choose(const Problem &p, assay_nan_contract declared) {
  const bool values = declared & ASSAY_NAN_VALUES, scores = declared & ASSAY_NAN_SCORES;
  if (values && (!scores || pick(p, 0x9a0, 3) == 0)) return Place::kValue;
  return pick(p, 0x9a1, 3) == 0 ? Place::kQuery : Place::kKey;
}

/// One key, about a tile of them, or all that the request has there.
void choose_keys(const Problem &p, const KeyRun &run, Poisoned &bad) {
  bad.cache = run.cache;
  bad.table_row = run.row;
  const int kind = bad.place == Place::kValue ? 0 : pick(p, 0x9a2, 3);
  bad.begin = kind == 2 ? 0 : pick(p, 0x9a3, run.len);
  bad.end = kind == 2 ? run.len : std::min(run.len, bad.begin + (kind == 1 ? 64 : 1));
}

void poison(Tensors &t, const Poisoned &bad) {
  const Problem &p = t.problem;
  if (bad.place == Place::kQuery) {
    t.set_bits(t.q, bad.row, bad.head, bad.dim, nan_bits(p.dtype));
    return;
  }
  const uint32_t nan = nan_bits(kv_dtype(p));
  for (int token = bad.begin; token < bad.end; ++token)
    if (bad.place == Place::kValue)
      t.set_val(bad.cache, bad.table_row, token, bad.kv_head, bad.dim, nan);
    else
      t.set_key(bad.cache, bad.table_row, token, bad.kv_head, bad.dim, nan);
}

CheckResult check_attention_row(const Tensors &in, const Tensors &out, const Poisoned &bad, int row,
                                int head) {
  if (bad.place == Place::kQuery) {
    if (row != bad.row || head != bad.head) return CheckResult::pass();
    return visible_count(in.problem, row) == 0 ? empty(out, row, head)
                                               : all_nan(out, row, head, "NaN query");
  }
  if (!sees(in, row, bad)) return CheckResult::pass();
  if (bad.place == Place::kKey) return all_nan(out, row, head, "NaN key");
  count_compared();
  if (std::isnan(out.out_o(row, head, bad.dim))) return CheckResult::pass();
  return missing("NaN value", row, head, bad.dim);
}

CheckResult check_attention(const Problem &p, Sut &sut) {
  Problem plain = p;
  plain.alibi = Alibi::kNone;
  plain.sinks = Sinks::kNone;
  Poisoned bad{choose(p, sut.kernel().nan_contract), pick(p, 0x9a4, p.batch),
               pick(p, 0x9a5, p.num_kv_heads), pick(p, 0x9a6, p.head_dim)};
  if (bad.place == Place::kValue) plain.q.regime = Regime::kZero;
  const int tokens = query_tokens(p, bad.request);
  if (tokens == 0) return CheckResult::discard("a request without query tokens");
  Tensors t = materialise(plain);
  std::vector<KeyRun> live;
  for (const KeyRun &run : key_runs(t, bad.request))
    if (run.len > 0) live.push_back(run);
  if (bad.place == Place::kQuery) {
    bad.row = row_of(p, {bad.request, pick(p, 0x9a7, tokens)});
    bad.head = bad.kv_head * p.group_size + pick(p, 0x9a8, p.group_size);
  } else {
    if (live.empty()) return CheckResult::discard("no keys");
    choose_keys(p, live[pick(p, 0x9a9, static_cast<int>(live.size()))], bad);
  }
  poison(t, bad);
  const Outcome run = run_tensors(std::move(t), sut);
  if (!run.ok()) return run.check;
  for (int token = 0; token < tokens; ++token)
    for (int g = 0; g < p.group_size; ++g) {
      CheckResult c =
          check_attention_row(run.before, run.after, bad, row_of(p, {bad.request, token}),
                              bad.kv_head * p.group_size + g);
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

/// The states of a merged row: side and index of each that is not empty.
struct State {
  int side, index;
};
std::vector<State> live_states(const Tensors &t, int row, int head) {
  std::vector<State> states;
  const auto add = [&](int side, int index) {
    if (t.value(t.in_lse[side], index, head) != -INFINITY) states.push_back({side, index});
  };
  if (t.problem.family == Family::kMergeState) {
    add(0, row);
    add(1, row);
  } else {
    for (int s = t.first_state[row]; s < t.first_state[row + 1]; ++s)
      add(0, s);
  }
  return states;
}

CheckResult check_merge(const Problem &p, Sut &sut) {
  Tensors t = materialise(p);
  const int row = pick(p, 0x9aa, p.batch), head = pick(p, 0x9ab, t.heads());
  const std::vector<State> live = live_states(t, row, head);
  if (live.size() < 2) return CheckResult::discard("fewer than two states that are not empty");
  const bool values = choose(p, sut.kernel().nan_contract) == Place::kValue;
  const int dim = pick(p, 0x9ac, p.head_dim);
  const size_t first = pick(p, 0x9ad, static_cast<int>(live.size()));
  const bool all = !values && pick(p, 0x9ae, 2) == 0;
  for (size_t i = 0; i < live.size(); ++i) {
    const auto &[side, index] = live[i];
    if (values) t.set_bits(t.in_lse[side], index, head, 0, 0); // equal weights
    if (!all && i != first) continue;
    if (values)
      t.set_bits(t.in_o[side], index, head, dim, nan_bits(p.dtype));
    else
      t.set_bits(t.in_lse[side], index, head, 0, nan_bits(Dtype::kFp32));
  }
  const Outcome run = run_tensors(std::move(t), sut);
  if (!run.ok()) return run.check;
  if (!values) return all_nan(run.after, row, head, "NaN LSE");
  count_compared();
  if (std::isnan(run.after.out_o(row, head, dim))) return CheckResult::pass();
  return missing("NaN in the o of a state", row, head, dim);
}

} // namespace

CheckResult nan_reaches_outputs(const Problem &p, Sut &sut) {
  if (p.batch == 0) return CheckResult::discard("no rows");
  return is_merge(p) ? check_merge(p, sut) : check_attention(p, sut);
}

} // namespace assay
