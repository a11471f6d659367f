// SPDX-License-Identifier: Apache-2.0
// Property: a cache is cut along the sequence into shards, a call attends to each, and their
// states, merged here, are what a call with all keys gives. Catches: local lengths for global ones,
// causal bounds, windows and distances by the index in the shard, states without keys that are not
// empty, a rank's constant that is missing from its LSE. Within bound: those of every call, and
// what the bounds of the LSEs leave open about the weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "properties/call/materialise.h"
#include "properties/case/features.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

constexpr double kLn2 = 0.6931471805599453;

struct Cut {
  int ranks, interleave;
};

Cut cut_of(const Problem &p) {
  const std::array interleaves = {1, p.page_size, 5, 16};
  return {2 + pick(p, 0x5a1, 2), interleaves[static_cast<size_t>(pick(p, 0x5a2, 4))]};
}

Problem with_all_keys(Problem p) {
  forget_shard(p);
  if (p.placement == Placement::kExplicit) p.placement = Placement::kReversed;
  p.page_ids.clear();
  return p;
}

/// The shard of a rank. The first one has the sinks.
Problem shard_of(const Problem &whole, Cut cut, int rank) {
  Problem shard = whole;
  shard.has_lse = true;
  shard.sharing = Sharing::kNone; // pages that are one hold other tokens than their shards
  shard.dcp_world_size = cut.ranks;
  shard.dcp_rank = rank;
  shard.dcp_interleave = cut.interleave;
  shard.foreign_tokens.assign(whole.seq_lens.size(), 0);
  for (int r = 0; r < whole.batch; ++r) {
    shard.seq_lens[r] = keys_before(shard, whole.seq_lens[r]);
    shard.foreign_tokens[r] = whole.seq_lens[r] - global_tokens(shard, r);
  }
  if (rank > 0) shard.sinks = Sinks::kNone;
  return shard;
}

Tensors shard_tensors(const Tensors &whole, const Problem &shard) {
  Tensors t = materialise(shard);
  for (int r = 0; r < query_rows(shard); ++r)
    for (int h = 0; h < t.heads(); ++h)
      copy_query(t, r, h, whole, r, h);
  for (int request = 0; request < shard.batch; ++request)
    for (int token = 0, key = 0; token < whole.problem.seq_lens[request]; ++token)
      if (token / shard.dcp_interleave % shard.dcp_world_size == shard.dcp_rank) {
        for (int h = 0; h < shard.num_kv_heads; ++h)
          copy_keys(t, 0, request, key, h, whole, 0, request, token, h);
        ++key;
      }
  return t;
}

/// What one rank says of a row, and how far it may be off.
struct Part {
  const Tensors *after;
  RowBound bound;
  double lse, weight; ///< natural base; not normalised
};

class Merged {
public:
  /// Rows without keys take part as the kernel has left them.
  Merged(std::vector<Part> parts, int row, int head)
      : parts_(std::move(parts)), row_(row), head_(head) {
    for (const Part &part : parts_) {
      top_ = std::max(top_, part.lse);
      if (!part.bound.empty) lse_radius_ = std::max(lse_radius_, part.bound.lse_radius);
    }
    for (Part &part : parts_) {
      part.weight = part.lse == -INFINITY ? 0 : std::exp(part.lse - top_);
      sum_ += part.weight;
    }
  }
  bool empty() const { return sum_ == 0; }
  double lse() const { return top_ + std::log(sum_); }

  struct Value {
    double value = 0, radius = 0;
  };
  /// `unit`: of the LSEs' radii, in natural units.
  Value component(int dim, Dtype dtype, double unit) const {
    const double open = std::expm1(2 * lse_radius_ * unit); // of a weight, relative
    Value out;
    for (const Part &part : parts_) {
      if (part.weight == 0) continue;
      const double written = part.after->out_o(row_, head_, dim);
      const double o = comparable(written, dtype);
      // A shard's output may leave the type where the whole one's does not: how far is not known.
      if (std::isinf(written)) out.radius = INFINITY;
      const double radius = part.bound.empty ? 0 : part.bound.o_radius[dim];
      out.value += part.weight / sum_ * o;
      out.radius += part.weight / sum_ * (radius + open * (std::fabs(o) + radius));
    }
    return out;
  }
  double lse_radius() const { return lse_radius_; }

private:
  std::vector<Part> parts_;
  int row_, head_;
  double top_ = -INFINITY, sum_ = 0, lse_radius_ = 0;
};

class Comparison {
public:
  Comparison(const Outcome &whole, const std::vector<Outcome> &shards, Sut &sut)
      : whole_(whole), of_whole_(whole, sut),
        unit_(whole.before.problem.lse_base == LseBase::kNatural ? 1 : kLn2) {
    for (const Outcome &shard : shards)
      of_shards_.push_back(std::make_unique<RunBounds>(shard, sut));
  }

  CheckResult row(int row, int head) {
    const RowBound want = of_whole_.row(row, head);
    if (!want.claim) return CheckResult::pass();
    std::vector<Part> parts;
    for (const auto &bounds : of_shards_) {
      const Tensors &after = bounds->run().after;
      parts.push_back({&after, bounds->row(row, head), after.out_lse(row, head) * unit_, 0});
      if (!parts.back().bound.claim) return CheckResult::pass();
    }
    const Merged merged(std::move(parts), row, head);
    if (merged.empty() || want.empty) {
      if (merged.empty() && want.empty) return CheckResult::pass();
      return CheckResult::fail(
          kWhat + ": " + element_name(row, head, 0) +
              (want.empty ? " has no keys, and a rank has some" : " has keys, and no rank has any"),
          wrong_element(Symptom::Kind::kNotEmpty, row, head, Symptom::kNowhere));
    }
    return values(row, head, want, merged);
  }

private:
  inline static const std::string kWhat = "the merged states of all ranks";

  CheckResult values(int row, int head, const RowBound &want, const Merged &merged) const {
    const Dtype dtype = whole_.before.problem.dtype;
    for (int i = 0; i < whole_.before.problem.head_dim; ++i) {
      const Merged::Value got = merged.component(i, dtype, unit_);
      CheckResult c = within(got.value, comparable(whole_.after.out_o(row, head, i), dtype),
                             got.radius + want.o_radius[i], {row, head, i}, kWhat);
      if (!c.passed()) return c;
    }
    if (whole_.after.lse.buffer < 0) return CheckResult::pass();
    return within(merged.lse() / unit_, whole_.after.out_lse(row, head),
                  merged.lse_radius() + want.lse_radius, {row, head, -1}, kWhat);
  }

  const Outcome &whole_;
  RunBounds of_whole_;
  std::vector<std::unique_ptr<RunBounds>> of_shards_;
  double unit_; ///< of an LSE in natural units
};

} // namespace

CheckResult shards_equal_whole(const Problem &p, Sut &sut) {
  if (p.batch == 0) return CheckResult::discard("no requests");
  const Cut cut = cut_of(p);
  const Problem all = with_all_keys(p);
  const Outcome whole = run_problem(all, sut);
  if (!whole.ok()) return whole.check;
  std::vector<Outcome> shards;
  for (int rank = 0; rank < cut.ranks; ++rank) {
    shards.push_back(run_tensors(shard_tensors(whole.before, shard_of(all, cut, rank)), sut));
    if (!shards.back().ok()) return shards.back().check;
  }
  Comparison comparison(whole, shards, sut);
  for (int r = 0; r < whole.before.rows(); ++r)
    for (int h = 0; h < whole.before.heads(); ++h) {
      CheckResult c = comparison.row(r, h);
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

} // namespace assay
