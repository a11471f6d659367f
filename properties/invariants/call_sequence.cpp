// SPDX-License-Identifier: Apache-2.0
// Property: what a call gives does not depend on the calls before it. Calls of changing shape run
// one after another in one process: each time one is made for the first time it is judged, behind
// another that differs in a field or two; later ones must give the bits of that first time. Every
// eighth case makes hundreds of calls. Then calls follow each other in buffers of one size, as an
// engine makes them: rows that are shorter or longer, page tables with other pages, fewer requests,
// another window. Catches: counters, caches that are keyed too loosely, plans, lengths and sizes of
// another call. Bitwise and within bound.
#include <algorithm>
#include <vector>

#include "properties/call/materialise.h"
#include "properties/case/hash.h"
#include "properties/case/query_rows.h"
#include "properties/case/simplify.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

constexpr int kMostRequests = 3, kMostKeys = 40;

/// A small case, since there are hundreds of calls.
Problem small(Problem p) {
  if (p.batch > kMostRequests) p = without_requests(p, kMostRequests, p.batch);
  drop_page_ids(p);
  p.num_kv_heads = std::min(p.num_kv_heads, 2);
  p.group_size = std::min(p.group_size, 4);
  p.num_splits = std::min(p.num_splits, 3);
  p.num_states = std::min(p.num_states, 20);
  for (int &len : p.seq_lens)
    len = std::min(len, kMostKeys);
  for (CascadeLevel &level : p.levels)
    for (int &len : level.lens)
      len = std::min(len, kMostKeys);
  return p;
}

/// With all its heads where the kernel refuses fewer.
Problem small(const Problem &p, Sut &sut) {
  Problem out = small(p);
  if (out.num_kv_heads == p.num_kv_heads && out.group_size == p.group_size) return out;
  if (!run_tensors(materialise(out), sut).check.unsupported) return out;
  out.num_kv_heads = p.num_kv_heads;
  out.group_size = p.group_size;
  return out;
}

class Variants {
public:
  explicit Variants(const Problem &p) : base_(p), all_{p} {}

  template <class Change>
  void with(Change change) {
    Problem c = base_;
    change(c);
    // The base stands between two of them, so that each call follows one that is nearly the same.
    if (c == base_ || !problem_error(c, full_limits()).empty()) return;
    all_.push_back(c);
  }
  const std::vector<Problem> &all() const { return all_; }

private:
  const Problem base_;
  std::vector<Problem> all_;
};

/// A number that is another one than before, up to `most`.
void turn(int &value, int most) { value = value < most ? value + 1 : 0; }

void vary_memory(Variants &v) {
  v.with([](Problem &c) { turn(c.q_pad, 3); });
  v.with([](Problem &c) { turn(c.out_pad, 3); });
  v.with([](Problem &c) { turn(c.lse_pad, 3); });
  v.with([](Problem &c) { c.q_heads_outermost = !c.q_heads_outermost; });
  v.with([](Problem &c) { c.out_heads_outermost = !c.out_heads_outermost; });
  v.with([](Problem &c) { c.lse_heads_outermost = !c.lse_heads_outermost; });
  v.with([](Problem &c) { c.base_seed += 12'345; });
  v.with([](Problem &c) { c.lse_base = static_cast<LseBase>(1 - static_cast<int>(c.lse_base)); });
  v.with([](Problem &c) { c.has_lse = !c.has_lse; });
  v.with([](Problem &c) { c.dtype = c.dtype == Dtype::kBf16 ? Dtype::kFp16 : Dtype::kBf16; });
  v.with([](Problem &c) { ++c.v.seed; });
  v.with([](Problem &c) { ++c.schedule.seed; });
  v.with([](Problem &c) {
    if (c.batch > 1) c = without_requests(c, 0, 1);
  });
}

void vary_attention(Variants &v) {
  v.with([](Problem &c) { turn(c.k_pad, 3); });
  v.with([](Problem &c) { turn(c.v_pad, 3); });
  v.with([](Problem &c) { c.k_layout = static_cast<Layout>(1 - static_cast<int>(c.k_layout)); });
  v.with([](Problem &c) { c.v_layout = static_cast<Layout>(1 - static_cast<int>(c.v_layout)); });
  v.with([](Problem &c) {
    c.scale = c.scale == ScaleKind::kOne ? ScaleKind::kInvSqrt : ScaleKind::kOne;
  });
  v.with([](Problem &c) { turn(c.num_splits, 3); });
  v.with([](Problem &c) { turn(c.table_pad, 3); });
  v.with([](Problem &c) { c.head_dim = c.head_dim == 64 ? 128 : 64; });
  v.with([](Problem &c) { c.placement = Placement::kReversed; });
  v.with([](Problem &c) {
    for (CascadeLevel &level : c.levels) {
      level.page_size = level.page_size == 16 ? 8 : 16;
      for (int &len : level.lens)
        len /= 2;
    }
  });
}

void vary_paged(Variants &v) {
  v.with([](Problem &c) { c.page_size = c.page_size == 16 ? 8 : 16; });
  v.with([](Problem &c) { c.window_left = c.window_left < 0 ? 6 : -1; });
  v.with([](Problem &c) {
    c.q_len = c.q_len == 1 ? 2 : 1;
    fit_requests(c);
  });
  v.with([](Problem &c) {
    if (!is_fp8(c)) {
      c.kv = KvType::kE4m3;
      return;
    }
    c.kv = KvType::kSame; // which has no scales
    c.k_scale = c.v_scale = ScaleLayout::kNone;
    c.kv_scales = KvScaleRegime::kUnit;
  });
  v.with([](Problem &c) {
    if (is_fp8(c)) c.k_scale = c.v_scale = ScaleLayout::kTensor;
  });
  v.with([](Problem &c) {
    c.logits_soft_cap = c.logits_soft_cap == Softcap::kNone ? Softcap::kOne : Softcap::kNone;
  });
  v.with([](Problem &c) { std::reverse(c.seq_lens.begin(), c.seq_lens.end()); });
  v.with([](Problem &c) {
    for (int &len : c.seq_lens)
      len = (len + 1) / 2;
  });
  v.with([](Problem &c) {
    c.batch += 2;
    c.seq_lens.resize(c.batch, 9);
    fit_requests(c);
  });
}

std::vector<Problem> variants_of(const Problem &p) {
  Variants v(p);
  vary_memory(v);
  if (is_attention(p)) vary_attention(v);
  if (p.family == Family::kPaged) vary_paged(v);
  if (is_merge(p)) {
    v.with([](Problem &c) { turn(c.num_states, 20); });
    v.with([](Problem &c) { c.ragged = c.family == Family::kMergeStates && !c.ragged; });
    v.with([](Problem &c) { c.head_dim = c.head_dim == 64 ? 72 : 64; });
    v.with([](Problem &c) { c.dtype = Dtype::kFp32; });
    v.with([](Problem &c) { ++c.batch; });
  }
  return v.all();
}

/// Some rows are longer than the window, and no row is once lengths are halved.
Problem with_rows_around_window(Problem p) {
  const int longest = p.seq_lens.empty() ? 0 : *std::ranges::max_element(p.seq_lens);
  p.window_left = longest > 1 ? std::max(1, longest * 3 / 4) - 1 : p.window_left;
  return p;
}

/// What an engine changes between two calls that it makes with the same buffers. The first is the
/// largest, and the second has rows of half the length where there are rows.
std::vector<Problem> contents_of(const Problem &p) {
  Variants v(p);
  const auto lengths = [&](int a, int b) { // a / b of each
    v.with([=](Problem &c) {
      for (int &len : c.seq_lens)
        len = len * a / b;
      for (CascadeLevel &level : c.levels)
        for (int &len : level.lens)
          len = len * a / b;
    });
  };
  lengths(1, 2);
  lengths(1, 5);
  v.with([](Problem &c) { c.placement = Placement::kReversed; });
  v.with([](Problem &c) { c.q.seed += 7, c.k.seed += 7, c.v.seed += 7; });
  if (p.batch > 1) v.with([](Problem &c) { c = without_requests(c, c.batch - 1, c.batch); });
  v.with([](Problem &c) { c.window_left = c.window_left < 0 ? -1 : c.window_left + 5; });
  return v.all();
}

MaterialiseOptions room_of(const Tensors &t) {
  MaterialiseOptions room;
  for (const CacheView &cache : t.caches) {
    room.least_columns.push_back(cache.max_pages);
    room.least_pages.push_back(cache.pool_pages);
  }
  room.least_rows = t.rows();
  return room;
}

/// The calls of one case, each with what it gave first.
class Sequence {
public:
  explicit Sequence(Sut &sut) : sut_(sut) {}
  void add(const Problem &p, const MaterialiseOptions &options = {}) {
    calls_.push_back({materialise(p, options), {}, false});
  }
  size_t size() const { return calls_.size(); }
  bool all_refused() const { return std::ranges::all_of(calls_, &Call::refused); }

  /// Judged or compared; what the kernel does not support says nothing.
  CheckResult make(size_t which) {
    Call &call = calls_[which];
    if (call.refused) return CheckResult::pass();
    Outcome run = run_tensors(call.before, sut_);
    if (run.check.unsupported) {
      call.refused = true;
      return CheckResult::pass();
    }
    if (!run.ok()) return run.check;
    if (call.first.buffers.empty()) {
      call.first = run.after;
      return inside_budget(run, sut_);
    }
    return same_bits(call.first, run.after, "the same call behind others");
  }

private:
  struct Call {
    Tensors before, first;
    bool refused;
  };
  Sut &sut_;
  std::vector<Call> calls_;
};

} // namespace

/// In a new process the first call is the largest in a third of the cases, the one of half the
/// lengths in another, else any: what it leaves is too much, too little or of another shape.
static CheckResult in_the_same_buffers(const Problem &p, const Problem &base, Sut &sut) {
  if (!is_attention(p)) return CheckResult::pass();
  const auto kind = pick(p, 0xb0f, 3);
  const auto first = static_cast<size_t>(kind < 2 ? kind : pick(p, 0xb1f, 97));
  // Half of the cases get a window. A kernel that refuses it is called without.
  for (bool windowed : {p.family == Family::kPaged && pick(p, 0xb2f, 2) == 0, false}) {
    const std::vector<Problem> contents =
        contents_of(windowed ? with_rows_around_window(base) : base);
    const MaterialiseOptions room = room_of(materialise(contents[0]));
    Sequence sequence(sut);
    for (const Problem &c : contents)
      sequence.add(c, room);
    sut.forget_earlier_calls();
    CheckResult out = CheckResult::pass();
    for (size_t i = 0; i < 2 * sequence.size() && out.passed(); ++i)
      out.also(sequence.make((first + i) % sequence.size()));
    if (!out.passed() || !windowed || !sequence.all_refused()) return out;
  }
  return CheckResult::pass();
}

CheckResult call_sequence(const Problem &p, Sut &sut) {
  constexpr int kLong = 320, kShort = 8;
  if (p.batch == 0) return CheckResult::discard("no rows");
  const Problem base = small(p, sut);
  sut.forget_earlier_calls();
  Sequence sequence(sut);
  for (const Problem &variant : variants_of(base))
    sequence.add(variant);
  const bool many = pick(p, 0xca11u, 8) == 0;
  CheckResult out = sequence.make(0);
  // One difference at a time: in short cases a few of them, others in every case.
  const size_t variants = sequence.size() - 1, first = static_cast<size_t>(pick(p, 1, 97));
  for (size_t i = 0; i < (many ? variants : std::min<size_t>(variants, 4)); ++i) {
    if (i > 0 && out.passed()) out.also(sequence.make(0));
    if (out.passed()) out.also(sequence.make(1 + (first + i) % variants));
  }
  for (int i = 0; out.passed() && i < (many ? kLong : kShort); ++i)
    out.also(sequence.make(hash_values(0xca11u, p.q.seed, p.v.seed, i) % sequence.size()));
  return out.passed() ? out.also(in_the_same_buffers(p, base, sut)) : out;
}

} // namespace assay
