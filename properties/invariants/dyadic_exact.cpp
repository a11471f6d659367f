// SPDX-License-Identifier: Apache-2.0
// Property: on inputs where attention is exact arithmetic, every schedule returns N / D. Catches:
// any lost, extra, repeated or misplaced key, skipped rescaling, wrong merge weights, a wrong
// scale; what hides in the rounding of P under real values has nowhere to hide here. Known value.
//
// Inputs. sm_scale = fl(ln 2 / 8), so that c = fl(sm_scale * log2 e) is 1/8 whether log2 e is a
// double or an fp32. Every score is 8 a with an integer a, so the base-2 logits are integers; those
// of a row span at most kRange = 7 and blocks of 16 keys have maxima of their own, so tiles, warps
// and splits disagree about the maximum. Values are integers in [-4, 4].
//
// Why nothing rounds. Scores are sums of small integers. Exponents of P and of every rescale are
// integers in [-7, 0], where exp2 is exact: P is a power of two, exact in bf16 and fp16. Row sums
// and accumulators are multiples of 2^-7 below 4 n, exact in fp32 and in the aligned window of a
// block-FMA while kRange + log2(4 n) + 1 <= min(24, F). States that keep their own maximum are
// merged with powers of two, exactly. So N = sum 2^(a - M) v and D = sum 2^(a - M) are exact, in
// any order, tile, warp or rescaling policy.
//
// What is left, u = 2^-24, eps as declared: the division, |o| (eps_rcp + u). If rows are cut into S
// splits that are merged through (O, LSE), also log2 of the row sums and what follows from it. With
// L = log2 n, Y = max |a| + L >= |LSE_s| and Y's differences at most kRange + L, a split's weight
// is off by the factor 1 + delta,
//   delta = ln 2 (eps_log2 (1 + L) + 3 u Y + 3.25 u (kRange + L)) + eps_exp2
// (3 u Y: the sum, and the conversion to a natural LSE; 3.25 u: difference and its conversion).
// With A = sum 2^(a - M) |v| / D, centred as in oracle/BOUNDS.md section 3,
//   B = delta (A + |o|) + (eps_rcp + u) (A + |o|) + (S + 2) u (A + |o|),
// widened by 2^-9 of itself for second-order terms. The output must be the rounding of a value in
// [o - B, o + B]: the bits of N / D unless a rounding boundary lies within B. LSE in base 2 is off
// by eps_log2 (1 + log2 D) + u |LSE|, with splits by delta / ln 2 + S u / ln 2 more.
//
// Asks for what T0 does not (kExactWeights): exponentials declared exact at integers
// (ASSAY_EXP_BASE2), row sums in fp32, products, scores and outputs that no other format rounds,
// and a Q that is exact or off by at most 2^-38 of its largest value, which the fp32 roundings of
// an integer exponent take back.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "oracle/bounds/declaration.h"
#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/case/hash.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/compared.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

constexpr int kRange = 7;
constexpr int kCarriers = 4; ///< pairs of dims per score sequence
constexpr double kUnit = 0x1p-24;
constexpr double kLn2 = 0.693147180559945309;

uint64_t draw(const Problem &p, uint32_t what, int a, int b = 0, int c = 0) {
  return hash_values(0xd7ad1cu, what, p.q.seed, p.k.seed, p.v.seed, a, b, c);
}
int small(uint64_t h, int magnitude) {
  return static_cast<int>(h % (2 * magnitude + 1)) - magnitude;
}

/// Two score sequences per key, so that the heads of a group see different scores. Levels move per
/// 16 keys, the rest per key.
int logit(const Problem &p, int row, int head, int token, int sequence) {
  int base = small(draw(p, 1, head, sequence), 8) + kRange;
  int level = static_cast<int>(draw(p, 2, row, token / 16, sequence) % 5);
  int key = static_cast<int>(draw(p, 3, row * 8 + head, token, sequence) % (kRange - 4 + 1));
  return base - level - key;
}

/// What a pair of dims is for: 0 or 1 carries that sequence, -1 is noise that cancels.
int role(const Problem &p, int pair) {
  int stride = p.head_dim / 2 / (2 * kCarriers);
  int shifted = pair + pick(p, 0xd1ad, stride);
  return shifted % stride == 0 ? shifted / stride % 2 : -1;
}
double sign(const Problem &p, int dim) { return draw(p, 4, dim) & 1 ? -1 : 1; }

void fill_query(Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  int sequence = static_cast<int>(draw(p, 5, row, head) & 1);
  int flip = draw(p, 6, row, head) & 2 ? -1 : 1;
  for (int i = 0; i < p.head_dim; ++i) {
    int carried = role(p, i / 2);
    double x = small(draw(p, 7, row, head, i / 2), 3);
    // An unused sequence has equal keys on both dims: opposite signs cancel it.
    if (carried >= 0) x = carried == sequence ? flip : i % 2 == 0 ? 1 : -1;
    t.set_bits(t.q, row, head, i, to_bits(p.dtype, static_cast<float>(x * sign(p, i))));
  }
}

void fill_key(Tensors &t, int cache, int row, int token, int head) {
  const Problem &p = t.problem;
  for (int i = 0; i < p.head_dim; ++i) {
    int carried = role(p, i / 2), owner = cache * 1024 + row;
    double x = carried >= 0 ? logit(p, owner, head, token, carried)
                            : small(draw(p, 8, owner, token, i / 2), 3) * (i % 2 == 0 ? 1 : -1);
    int v = small(draw(p, 9, owner * 8 + head, token, i), 4);
    t.set_key(cache, row, token, head, i, to_bits(p.dtype, static_cast<float>(x * sign(p, i))));
    t.set_val(cache, row, token, head, i, to_bits(p.dtype, static_cast<float>(v)));
  }
}

Tensors dyadic_inputs(const Problem &p) {
  Problem exact = without_features(p); // the derivation above is of plain attention
  exact.scale = ScaleKind::kDyadic;
  Tensors t = materialise(exact);
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < t.heads(); ++h)
      fill_query(t, r, h);
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int token = 0; token < t.caches[c].len[row]; ++token)
        for (int h = 0; h < p.num_kv_heads; ++h)
          fill_key(t, static_cast<int>(c), row, token, h);
  return t;
}

/// One row in exact arithmetic, from what lies in memory: shared slots hold what was written last.
struct ExactRow {
  int keys = 0;
  double max = -1e9, min = 1e9; ///< logits
  double sum = 0;               ///< D
  std::vector<double> o, a;     ///< N / D, and with absolute values
};

ExactRow exact_row(const Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  int kv_head = head / p.group_size;
  ExactRow out;
  std::vector<double> q(p.head_dim), logits;
  for (int i = 0; i < p.head_dim; ++i)
    q[i] = t.value(t.q, row, head, i);
  for (const KeyRun &run : key_runs(t, row))
    for (int k = 0; k < run.len; ++k) {
      double score = 0;
      for (int i = 0; i < p.head_dim; ++i)
        score += q[i] * from_bits(p.dtype, t.key(run.cache, run.row, k, kv_head, i));
      logits.push_back(score / 8);
      out.max = std::max(out.max, score / 8);
      out.min = std::min(out.min, score / 8);
    }
  out.keys = static_cast<int>(logits.size());
  out.o.assign(p.head_dim, 0);
  out.a.assign(p.head_dim, 0);
  size_t next = 0;
  for (const KeyRun &run : key_runs(t, row))
    for (int k = 0; k < run.len; ++k, ++next) {
      double weight = std::exp2(logits[next] - out.max);
      out.sum += weight;
      for (int i = 0; i < p.head_dim; ++i) {
        double v = from_bits(p.dtype, t.val(run.cache, run.row, k, kv_head, i));
        out.o[i] += weight * v;
        out.a[i] += weight * std::fabs(v);
      }
    }
  for (int i = 0; i < p.head_dim; ++i) {
    out.o[i] /= out.sum;
    out.a[i] /= out.sum;
  }
  return out;
}

/// The error terms of the file's head.
struct Allowance {
  double own, split; ///< times |o|, and times A + |o|
  double lse;        ///< base 2
};

Allowance allowance(const ExactRow &row, const assay_arithmetic &a, int splits) {
  double n2 = std::log2(row.keys), y = std::max(std::fabs(row.max), std::fabs(row.min)) + n2;
  double lse = row.max + std::log2(row.sum);
  Allowance out{a.rcp_rel_error + kUnit, 0,
                a.log2_abs_error * (1 + std::log2(row.sum)) + kUnit * std::fabs(lse)};
  if (splits > 1) {
    double delta =
        kLn2 * (a.log2_abs_error * (1 + n2) + 3 * kUnit * y + 3.25 * kUnit * (kRange + n2)) +
        a.exp2_rel_error;
    out.split = delta + a.rcp_rel_error + kUnit + (splits + 2) * kUnit;
    out.lse += (delta + splits * kUnit) / kLn2;
  }
  out.own *= 1 + 0x1p-9;
  out.split *= 1 + 0x1p-9;
  out.lse *= 1 + 0x1p-9;
  return out;
}

bool sums_are_exact(const ExactRow &row, const assay_arithmetic &a) {
  int window = a.mma_block > 0 ? std::min(24, a.mma_fraction_bits) : 24;
  return row.max - row.min <= kRange && kRange + std::log2(4.0 * row.keys) + 1 <= window;
}

/// Rounds like a kernel, whatever lies within `radius` of the exact value.
CheckResult same_rounding(float got, double exact, double radius, Dtype dtype, const Element &at) {
  count_compared();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  auto rounded = [&](double x, float towards) {
    // Outwards to fp32 first: a double rounding must not cut the interval.
    auto f = static_cast<float>(x);
    if (towards < 0 ? f > x : f < x) f = std::nextafter(f, towards);
    return from_bits(dtype, to_bits(dtype, f));
  };
  float low = rounded(exact - radius, -kInf), high = rounded(exact + radius, kInf);
  if (got >= low && got <= high) return CheckResult::pass();
  Symptom symptom = wrong_value(at.row, at.head, at.dim, got, exact, radius);
  if (symptom.kind == Symptom::Kind::kOutside) symptom.kind = Symptom::Kind::kNotExact;
  return CheckResult::fail(
      fmt::format("dyadic inputs: {} is {:.9g}, exactly {:.12g}, which rounds to {:.9g}{}",
                  element_name(at.row, at.head, at.dim), got, exact, low,
                  low == high ? "" : fmt::format(" or {:.9g}", high)),
      std::move(symptom));
}

CheckResult check_row(const Outcome &run, const RunBounds &bounds, const Sut &sut, int row,
                      int head) {
  const Problem &p = run.before.problem;
  ExactRow exact = exact_row(run.before, row, head);
  if (exact.keys == 0) return CheckResult::pass();
  if (!sums_are_exact(exact, sut.kernel().arithmetic))
    return CheckResult::discard("more keys than the kernel sums exactly");
  int splits = bounds.splits(row);
  Allowance allowed = allowance(exact, sut.kernel().arithmetic, splits);
  for (int i = 0; i < p.head_dim; ++i) {
    double o = std::fabs(exact.o[i]);
    CheckResult c =
        same_rounding(run.after.out_o(row, head, i), exact.o[i],
                      allowed.own * o + allowed.split * (exact.a[i] + o), p.dtype, {row, head, i});
    if (!c.passed()) return c;
  }
  if (!p.has_lse) return CheckResult::pass();
  double lse = exact.max + std::log2(exact.sum), radius = allowed.lse;
  if (p.lse_base == LseBase::kNatural) {
    lse *= kLn2;
    radius = kLn2 * radius + 2 * kUnit * std::fabs(lse);
  }
  return within(run.after.out_lse(row, head), lse, radius, {row, head, -1}, "dyadic inputs");
}

} // namespace

CheckResult dyadic_exact(const Problem &p, Sut &sut) {
  oracle::require_declaration(sut.kernel().arithmetic);
  Outcome run = run_tensors(dyadic_inputs(p), sut);
  if (!run.ok()) return run.check;
  const RunBounds bounds(run, sut);
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < run.after.heads(); ++h)
      if (CheckResult c = check_row(run, bounds, sut, r, h); !c.passed()) return c;
  return CheckResult::pass();
}

} // namespace assay
