// SPDX-License-Identifier: Apache-2.0
#include "properties/case/simplify.h"

#include <algorithm>

#include "properties/case/features.h"
#include "properties/case/query_rows.h"

namespace assay {
namespace {

int overlap(int begin, int end, int from, int to) {
  return std::max(0, std::min(end, to) - std::max(begin, from));
}

} // namespace

void drop_page_ids(Problem &p) {
  if (p.placement != Placement::kExplicit) return;
  p.placement = Placement::kIdentity;
  p.page_ids.clear();
}

Problem without_requests(const Problem &p, int begin, int end) {
  Problem c = p;
  erase_requests(c, begin, end);
  drop_page_ids(c);
  for (CascadeLevel &level : c.levels) {
    int first = level.first;
    level.first -= overlap(begin, end, 0, first);
    for (int &count : level.requests) {
      const int last = first + count;
      count -= overlap(begin, end, first, last);
      first = last;
    }
  }
  return c;
}

Problem only_request(const Problem &p, int keep) {
  return without_requests(without_requests(p, keep + 1, p.batch), 0, keep);
}

namespace {

Candidates batches(const Problem &p) {
  Candidates out;
  if (p.batch <= 1) return out;
  constexpr int kMaxParts = 16;
  for (int parts = 2; p.batch > kMaxParts && parts <= kMaxParts; parts *= 2)
    for (int part = parts - 1; part >= 0; --part)
      out.push_back(without_requests(p, static_cast<int>(int64_t{p.batch} * part / parts),
                                     static_cast<int>(int64_t{p.batch} * (part + 1) / parts)));
  if (p.batch > kManyRequests) return out;
  // One request alone, then one less.
  for (int keep = 0; keep < p.batch; ++keep)
    out.push_back(only_request(p, keep));
  for (int row = p.batch - 1; row >= 0; --row)
    out.push_back(without_requests(p, row, row + 1));
  return out;
}

Candidates heads(const Problem &p) {
  Candidates out;
  field_towards(out, p, &Problem::num_kv_heads, 1);
  field_towards(out, p, &Problem::group_size, 1);
  return out;
}

Candidates levels(const Problem &p) {
  Candidates out;
  for (size_t l = 0; p.levels.size() > 1 && l < p.levels.size(); ++l) {
    Problem c = p;
    c.levels.erase(c.levels.begin() + static_cast<long>(l));
    out.push_back(std::move(c));
  }
  for (size_t l = 0; l < p.levels.size(); ++l) {
    for (size_t s = 0; s < p.levels[l].lens.size(); ++s) {
      Problem c = p;
      CascadeLevel &level = c.levels[l];
      // Requests of a removed segment become uncovered or move to its neighbour's left.
      level.requests.erase(level.requests.begin() + static_cast<long>(s));
      level.lens.erase(level.lens.begin() + static_cast<long>(s));
      out.push_back(std::move(c));
    }
    towards(out, p, p.levels[l].first, 0, [&](Problem &c, int v) { c.levels[l].first = v; });
  }
  return out;
}

Candidates lengths(const Problem &p) {
  Candidates out;
  for (size_t r = 0; r < p.seq_lens.size(); ++r)
    for (int simplest : {0, 1})
      if (p.seq_lens[r] > simplest)
        towards(out, p, p.seq_lens[r], simplest, [&](Problem &c, int v) {
          c.seq_lens[r] = v;
          drop_page_ids(c);
        });
  for (size_t l = 0; l < p.levels.size(); ++l)
    for (size_t s = 0; s < p.levels[l].lens.size(); ++s)
      towards(out, p, p.levels[l].lens[s], 0, [&](Problem &c, int v) { c.levels[l].lens[s] = v; });
  if (is_merge(p))
    field_towards(out, p, &Problem::num_states, p.family == Family::kMergeState ? 2 : 0);
  return out;
}

Candidates pages(const Problem &p) {
  Candidates out;
  offer(out, p, [](Problem &c) { drop_page_ids(c); });
  offer(out, p, [](Problem &c) {
    c.placement = Placement::kIdentity;
    c.placement_seed = 0;
    c.page_ids.clear();
  });
  if (p.placement == Placement::kShuffled)
    offer(out, p, [](Problem &c) {
      c.placement = Placement::kReversed;
      c.placement_seed = 0;
    });
  offer(out, p, [](Problem &c) {
    c.sharing = Sharing::kNone;
    drop_page_ids(c);
  });
  field_towards(out, p, &Problem::spare_pages, 0);
  offer(out, p, [](Problem &c) { c.huge_pool = false; });
  field_towards(out, p, &Problem::table_pad, 0);
  towards(out, p, p.page_size, 1, [](Problem &c, int v) {
    c.page_size = v;
    drop_page_ids(c);
  });
  for (size_t l = 0; l < p.levels.size(); ++l)
    towards(out, p, p.levels[l].page_size, 1,
            [&](Problem &c, int v) { c.levels[l].page_size = v; });
  offer(out, p, [](Problem &c) { c.k_layout = Layout::kNhd; });
  offer(out, p, [](Problem &c) { c.v_layout = Layout::kNhd; });
  return out;
}

Candidates shape(const Problem &p) {
  Candidates out;
  if (is_merge(p))
    towards(out, p, p.head_dim / 8, 1, [](Problem &c, int v) { c.head_dim = v * 8; });
  else if (p.head_dim != 64)
    towards(out, p, p.head_dim, 64, [](Problem &c, int) { c.head_dim = 64; });
  for (int Problem::*pad :
       {&Problem::q_pad, &Problem::out_pad, &Problem::k_pad, &Problem::v_pad, &Problem::lse_pad})
    field_towards(out, p, pad, 0);
  field_towards(out, p, &Problem::num_splits, 0);
  return out;
}

template <class E, class M>
void simpler_enum(Candidates &out, const Problem &p, M get, E simplest) {
  Problem c = p;
  if (get(c) == simplest) return;
  get(c) = simplest;
  out.push_back(std::move(c));
}

/// Features leave together, then one by one.
Candidates by_feature(const Problem &p) {
  Candidates out;
  offer(out, p, [](Problem &c) { c = without_features(c); });
  // A sink alone gives a row without keys an LSE: one key does as well.
  if (has_features(p) && p.seq_lens == std::vector{0})
    offer(out, p, [](Problem &c) {
      c = without_features(c);
      c.seq_lens = {1};
      drop_page_ids(c);
    });
  for (const FeatureRow &feature : features())
    feature.simplify(p, out);
  offer(out, p, [](Problem &c) { c.feature_seed = 0; });
  return out;
}

/// regime -> N(0,1) -> small integers -> 0/1, exponents to 0, seeds to 0.
Candidates values(const Problem &p) {
  Candidates out;
  for (Values Problem::*tensor : {&Problem::v, &Problem::k, &Problem::q}) {
    for (Regime regime : {Regime::kBinary, Regime::kSmallInt, Regime::kNormal})
      if (regime < (p.*tensor).regime)
        simpler_enum(
            out, p, [&](Problem &c) -> Regime & { return (c.*tensor).regime; }, regime);
    towards(out, p, (p.*tensor).exponent, 0, [&](Problem &c, int v) { (c.*tensor).exponent = v; });
    for (uint32_t seed : {0u, 1u, 2u})
      if ((p.*tensor).seed > seed)
        simpler_enum(
            out, p, [&](Problem &c) -> uint32_t & { return (c.*tensor).seed; }, seed);
  }
  for (LseRegime regime : {LseRegime::kEqual, LseRegime::kNormal})
    if (regime < p.lse_regime)
      simpler_enum(
          out, p, [](Problem &c) -> LseRegime & { return c.lse_regime; }, regime);
  return out;
}

Candidates settings(const Problem &p) {
  Candidates out;
  simpler_enum(
      out, p, [](Problem &c) -> Dtype & { return c.dtype; }, Dtype::kBf16);
  simpler_enum(
      out, p, [](Problem &c) -> LseBase & { return c.lse_base; }, LseBase::kNatural);
  simpler_enum(
      out, p, [](Problem &c) -> bool & { return c.has_lse; }, true);
  simpler_enum(
      out, p, [](Problem &c) -> ScaleKind & { return c.scale; }, ScaleKind::kInvSqrt);
  simpler_enum(
      out, p, [](Problem &c) -> bool & { return c.ragged; }, false);
  simpler_enum(
      out, p, [](Problem &c) -> InPlace & { return c.in_place; }, InPlace::kNo);
  simpler_enum(
      out, p, [](Problem &c) -> Poison & { return c.poison; }, Poison::kNan);
  simpler_enum(
      out, p, [](Problem &c) -> BlockOrder & { return c.schedule.order; }, BlockOrder::kAscending);
  simpler_enum(
      out, p, [](Problem &c) -> CopyTiming & { return c.schedule.copies; }, CopyTiming::kAtWait);
  simpler_enum(
      out, p, [](Problem &c) -> bool & { return c.even_lengths; }, false);
  simpler_enum(
      out, p, [](Problem &c) -> bool & { return c.enable_pdl; }, false);
  simpler_enum(
      out, p, [](Problem &c) -> uint32_t & { return c.base_seed; }, 0u);
  for (bool Problem::*outermost :
       {&Problem::q_heads_outermost, &Problem::out_heads_outermost, &Problem::lse_heads_outermost})
    simpler_enum(
        out, p, [=](Problem &c) -> bool & { return c.*outermost; }, false);
  simpler_enum(
      out, p, [](Problem &c) -> uint32_t & { return c.schedule.seed; }, 0u);
  simpler_enum(
      out, p, [](Problem &c) -> uint32_t & { return c.placement_seed; }, 0u);
  return out;
}

} // namespace

std::vector<Candidates> simpler_by_field(const Problem &p) {
  return {batches(p), levels(p),     heads(p),  lengths(p), pages(p),
          shape(p),   by_feature(p), values(p), settings(p)};
}

} // namespace assay
