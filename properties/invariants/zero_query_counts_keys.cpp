// SPDX-License-Identifier: Apache-2.0
// Property: with q = 0 every visible key has the same weight, so that O is the mean of the values,
// and LSE is the log of their number. The value of key j has two elements that are not 0, which
// write j as a number of four digits: no two keys of a row have the same value. Keys count
// exp(slope * distance) with ALiBi, a sink exp(its logit) in the denominator, values v_scale.
// Catches: any lost, extra, repeated or displaced key, and names two of its digits; masks,
// distances and sinks off by one. Within bound around values known without the oracle.
#include <cmath>

#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

/// What a query row must return.
struct Count {
  int keys = 0;
  std::vector<double> o;
  double lse = 0; ///< natural
};

double logit_of(const Tensors &t, int row, int head, int key) {
  return t.slopes < 0 ? 0 : double(t.scalar(t.slopes, head)) * key_distance(t.problem, row, key);
}

Count count_keys(const Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  const int kv_head = head / p.group_size;
  const double sink = t.sink(head);
  Count out;
  out.o.assign(p.head_dim, 0);
  double top = sink, sum = 0;
  for (const VisibleRun &run : visible_runs(t, row))
    for (int k = run.begin; k < run.end; ++k)
      top = std::max(top, logit_of(t, row, head, k));
  // A shared slot holds one token id; read back what the row really sees.
  for (const VisibleRun &run : visible_runs(t, row))
    for (int k = run.begin; k < run.end; ++k, ++out.keys) {
      const double weight = std::exp(logit_of(t, row, head, k) - top);
      sum += weight;
      for (int i = 0; i < p.head_dim; ++i)
        out.o[i] += weight * t.val_value(run.cache, run.row, k, kv_head, i);
    }
  if (!std::isinf(sink)) sum += std::exp(sink - top);
  for (double &x : out.o)
    x *= t.value_scale(kv_head) / sum;
  out.lse = top + std::log(sum);
  return out;
}

/// Element `dim` of the value of key `key`. With h = head_dim / 2, key = a + h (b + h (c + 16 d)):
/// element a is a weight that stands for d, element h + b one for c. Distinct for 256 h^2 keys: the
/// largest row that a host holds. Every KV dtype has the weights.
float key_code(const Problem &p, int key, int dim) {
  static constexpr float kWeights[] = {1, 1.25f, 1.5f, 1.75f, 2, 2.5f, 3,  3.5f,
                                       4, 5,     6,    7,     8, 10,   12, 14};
  const int half = p.head_dim / 2, high = key / half / half;
  if (dim < half) return key % half == dim ? kWeights[high / 16 % 16] : 0;
  return key / half % half == dim - half ? kWeights[high % 16] : 0;
}

Tensors counting_inputs(const Problem &p) {
  Problem counting = p;
  counting.q.regime = Regime::kZero;
  counting.k.exponent = 0;
  if (p.k.regime > Regime::kZero) counting.k.regime = Regime::kNormal;
  Tensors t = materialise(counting);
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int k = 0; k < t.caches[c].len[row]; ++k)
        for (int h = 0; h < p.num_kv_heads; ++h)
          for (int i = 0; i < p.head_dim; ++i)
            t.set_val(static_cast<int>(c), row, k, h, i, to_bits(kv_dtype(p), key_code(p, k, i)));
  return t;
}

} // namespace

CheckResult zero_query_counts_keys(const Problem &p, Sut &sut) {
  Outcome run = run_tensors(counting_inputs(p), sut);
  if (!run.ok()) return run.check;
  RunBounds bounds(run, sut);
  for (int r = 0; r < run.after.rows(); ++r)
    for (int h = 0; h < run.after.heads(); ++h) {
      Count count = count_keys(run.before, r, h);
      if (count.keys == 0) continue;
      RowBound bound = bounds.row(r, h);
      if (!bound.claim) continue;
      for (int i = 0; i < p.head_dim; ++i) {
        // Exponentials and sums in double: 2^-40 of the result is far more than their error.
        CheckResult c =
            within(run.after.out_o(r, h, i), count.o[i],
                   bound.o_radius[i] + std::fabs(count.o[i]) * 0x1p-40, {r, h, i}, "counting keys");
        if (!c.passed()) return c;
      }
      if (!p.has_lse) continue;
      double lse = p.lse_base == LseBase::kBase2 ? count.lse * 1.44269504088896340736 : count.lse;
      CheckResult c =
          within(run.after.out_lse(r, h), lse, bound.lse_radius + (1 + std::fabs(lse)) * 0x1p-45,
                 {r, h, -1}, "counting keys");
      if (!c.passed()) return c;
    }
  return CheckResult::pass();
}

} // namespace assay
