// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_rescale: states with one defect each must be caught by the seed corpus.
#include "fuzz/paths/rescale_chain.h"

#include <gtest/gtest.h>

#include "fuzz/tests/seeds.h"

namespace assay::fuzz {
namespace {

using Base = KernelState;
using S = n_simt::Scalar<float>;

template <class State>
void expect_caught() {
  EXPECT_NE(first_violation("fuzz_rescale", check_rescale<State>), "");
}

TEST(RescaleControl, the_kernels_own_state_passes) {
  EXPECT_EQ(first_violation("fuzz_rescale", check_rescale<>), "");
}

struct NoEmptyGuard : Base {
  void merge(const NoEmptyGuard &b, float scale) {
    const float m_new = S::max(m, b.m);
    const float x = S::exp2((m - m_new) * scale), y = S::exp2((b.m - m_new) * scale);
    d = d * x + b.d * y;
    for (int i = 0; i < kLanes; ++i)
      o[i] = o[i] * x + b.o[i] * y;
    m = m_new;
  }
};
TEST(RescaleControl, no_empty_guard_in_merge) { expect_caught<NoEmptyGuard>(); }

/// Ignores an empty other side only; adds a dead o to 0 when it is empty itself.
struct LeftGuardMissing : Base {
  void merge(const LeftGuardMissing &b, float scale) {
    if (b.is_empty()) return;
    const float m_new = S::max(m, b.m);
    const float x = weight(m, m_new, scale), y = weight(b.m, m_new, scale);
    d = d * x + b.d * y;
    for (int i = 0; i < kLanes; ++i)
      o[i] = o[i] * x + b.o[i] * y;
    m = m_new;
  }
};
TEST(RescaleControl, identity_neutral_on_one_side_only) { expect_caught<LeftGuardMissing>(); }

struct NotCommutative : Base {
  void merge(const NotCommutative &b, float scale) {
    if (b.is_empty()) return;
    if (is_empty()) {
      *this = b;
      return;
    }
    const float m_new = S::max(m, b.m);
    const float x = weight(m, m_new, scale), y = weight(b.m, m_new, scale);
    d = S::fma(b.d, y, d * x); // one contraction
    for (int i = 0; i < kLanes; ++i)
      o[i] = S::fma(b.o[i], y, o[i] * x);
    m = m_new;
  }
};
TEST(RescaleControl, contracted_merge) { expect_caught<NotCommutative>(); }

struct OutputNotRescaled : Base {
  void absorb(float score, const float (&v)[kLanes], float scale) {
    const float m_new = S::max(m, score);
    d = d * weight(m, m_new, scale);
    m = m_new;
    const float p = weight(score, m, scale);
    d = d + p;
    for (int i = 0; i < kLanes; ++i)
      o[i] = S::fma(p, v[i], o[i]);
  }
};
TEST(RescaleControl, output_not_rescaled) { expect_caught<OutputNotRescaled>(); }

struct FiniteSentinel : Base {
  void absorb(float score, const float (&v)[kLanes], float scale) {
    Base::absorb(S::max(score, -1e30f), v, scale);
  }
};
TEST(RescaleControl, finite_sentinel_for_minus_infinity) { expect_caught<FiniteSentinel>(); }

struct NanSkipped : Base {
  void absorb(float score, const float (&v)[kLanes], float scale) {
    if (score == score) Base::absorb(score, v, scale);
  }
};
TEST(RescaleControl, nan_score_skipped) { expect_caught<NanSkipped>(); }

/// Overflows when scores lie further apart than fp32's exponent range.
struct ScaledTooEarly : Base {
  void absorb(float score, const float (&v)[kLanes], float scale) {
    const float m_new = S::max(m, score), old = m;
    m = m_new;
    const float up = is_empty() ? 0.0f : S::exp2(old * scale), down = S::exp2(-m_new * scale);
    d = d * (up * down) + S::exp2(score * scale) * down;
    for (int i = 0; i < kLanes; ++i)
      o[i] = o[i] * (up * down) + S::exp2(score * scale) * down * v[i];
  }
};
TEST(RescaleControl, exponentials_of_raw_scores) { expect_caught<ScaledTooEarly>(); }

struct LseWithoutScale : Base {
  float lse2(float) const { return is_empty() ? m : m + S::log2(d); }
};
TEST(RescaleControl, lse_in_score_units) { expect_caught<LseWithoutScale>(); }

struct EmptyGivesNan : Base {
  void normalize() {
    for (float &x : o)
      x = x * S::reciprocal(d);
  }
};
TEST(RescaleControl, empty_state_divides_by_zero) { expect_caught<EmptyGivesNan>(); }

/// How small an error is seen: the weights of absorb are off by 16 ulp.
struct SixteenUlp : Base {
  void absorb(float score, const float (&v)[kLanes], float scale) {
    rescale_to(S::max(m, score), scale);
    const float p = weight(score, m, scale) * (1 + 0x1p-19f);
    d = d + p;
    for (int i = 0; i < kLanes; ++i)
      o[i] = S::fma(p, v[i], o[i]);
  }
};
TEST(RescaleControl, sixteen_ulp_in_a_weight) { expect_caught<SixteenUlp>(); }

} // namespace
} // namespace assay::fuzz
