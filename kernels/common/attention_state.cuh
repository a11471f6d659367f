// SPDX-License-Identifier: Apache-2.0
// AttentionState: what attention over a set of keys leaves behind, in a form that can be merged.
#pragma once

#include "kernels/common/scalar.cuh"

namespace assay::ASSAY_TARGET {

/// Running softmax state (m, d, o) of one query row over a set of keys.
///
///   m     maximum score, in score units: a logit in base 2 is scale * score
///   d     sum over keys of 2^(scale * (score - m))
///   o[N]  sum over keys of 2^(scale * (score - m)) * v, NOT normalised (N of the head_dim
///         components; a kernel spreads one row over several threads)
///
/// The empty set is the identity (m = -inf, d = 0, o = 0). States over disjoint key sets form a
/// commutative monoid under merge() in exact arithmetic. In floating point the error per merge is
/// at most a few ulp of sum |w o| (oracle/BOUNDS.md, "merge"). Every exponent is at most 0, so
/// finite scores never overflow.
/// Method: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
template <class R, int N>
struct AttentionState {
  using S = Scalar<R>;

  R m, d;
  R o[N];

  static ASSAY_DEVICE AttentionState identity() {
    AttentionState s;
    s.m = S::neg_infinity();
    s.d = S::zero();
    ASSAY_UNROLL
    for (int i = 0; i < N; ++i)
      s.o[i] = S::zero();
    return s;
  }

  /// The state of a partial result that is normalised already. o is as stored, and lse is log2 of
  /// the mass in units of 1 / scale: scale is 1 for a base-2 LSE and log2(e) for a natural one.
  static ASSAY_DEVICE AttentionState from_normalized(R lse, const R (&o)[N]) {
    AttentionState s;
    s.m = lse;
    s.d = S::one();
    ASSAY_UNROLL
    for (int i = 0; i < N; ++i)
      s.o[i] = o[i];
    return s;
  }

  /// Whether no key counts: none was there, or none had a weight. Where every score was NaN the
  /// maximum is -inf, too, but the mass is NaN.
  ASSAY_DEVICE bool is_empty() const { return S::is_neg_infinity(m) && d == d; }

  /// Raises the reference maximum to `m_new` >= m. Exact when m_new == m.
  ASSAY_DEVICE void rescale_to(R m_new, R scale) {
    const R alpha = weight(m, m_new, scale);
    d = d * alpha;
    ASSAY_UNROLL
    for (int i = 0; i < N; ++i)
      o[i] = o[i] * alpha;
    m = m_new;
  }

  /// Adds one key.
  ASSAY_DEVICE void absorb(R score, const R (&v)[N], R scale) {
    rescale_to(S::max(m, score), scale);
    const R p = weight(score, m, scale);
    d = d + p;
    ASSAY_UNROLL
    for (int i = 0; i < N; ++i)
      o[i] = S::fma(p, v[i], o[i]);
  }

  /// Adds a disjoint set of keys. Merged with the identity a state keeps its bits, whatever the o
  /// of the identity holds. Products and sums are rounded separately, so that a.merge(b) and
  /// b.merge(a) have the same bits.
  ASSAY_DEVICE void merge(const AttentionState &other, R scale) {
    if (other.is_empty()) return;
    if (is_empty()) {
      *this = other;
      return;
    }
    const R m_new = S::max(m, other.m);
    const R a = weight(m, m_new, scale), b = weight(other.m, m_new, scale);
    d = d * a + other.d * b;
    ASSAY_UNROLL
    for (int i = 0; i < N; ++i)
      o[i] = o[i] * a + other.o[i] * b;
    m = m_new;
  }

  /// Divides by the mass. An empty state becomes o = 0.
  ASSAY_DEVICE void normalize() {
    const R inverse = S::reciprocal(d);
    ASSAY_UNROLL
    for (int i = 0; i < N; ++i)
      o[i] = is_empty() ? S::zero() : R(o[i] * inverse);
  }

  /// log2 of the total mass: scale * m + log2(d), or -inf for the empty state.
  ASSAY_DEVICE R lse2(R scale) const {
    return is_empty() ? S::neg_infinity() : R(scale * m + S::log2(d));
  }

  /// 2^(scale * (from - to)) for from <= to. Where `from` is -inf it is 0, also where `to` is -inf.
  static ASSAY_DEVICE R weight(R from, R to, R scale) {
    if (S::is_neg_infinity(from)) return S::zero();
    return S::exp2(R(from - to) * scale);
  }
};

} // namespace assay::ASSAY_TARGET
