// SPDX-License-Identifier: Apache-2.0
// The exact arithmetic of the executor: its laws, what is undefined and why, and its mma against
// sums written out.
#include <gtest/gtest.h>

#include "kernels/arch/math.cuh"
#include "kernels/arch/mma.cuh"
#include "kernels/arch/simt/field_number.h"
#include "kernels/arch/sync.cuh"
#include "kernels/simt/launch.h"

namespace assay::n_simt::arch {
namespace {

using detail::defined;
using detail::kLn2;
using detail::kLog2E;
using detail::kOrder;
using detail::kPrime;
using detail::kUndefined;
using detail::number_of;

field number(uint64_t a, uint64_t b) { return detail::enter({a, b, 1, 1}); }

/// Runs `body` on one thread, or on `threads`.
void run(simt::FunctionRef<void()> body, uint32_t threads = 1) {
  simt::Stream stream;
  simt::LaunchConfig config;
  config.block = threads;
  EXPECT_EQ(simt::launch(&stream, config, body), simt::LaunchStatus::kOk)
      << (stream.hazards.empty() ? "" : stream.hazards.back().message);
}

TEST(Field, sums_and_products_are_residues) {
  run([] {
    const field x = number(kPrime - 3, kOrder - 3), y = number(5, 5);
    EXPECT_EQ(number_of(x + y).a, 2u);
    EXPECT_EQ(number_of(x + y).b, 2u);
    EXPECT_EQ(number_of(x * y).a, kPrime - 15);
    EXPECT_EQ(number_of(x * y).b, kOrder - 15);
    EXPECT_EQ(number_of(y - x).a, 8u);
    EXPECT_EQ(number_of(-y).b, kOrder - 5);
    EXPECT_EQ(number_of(rcp_approx(y) * y).a, 1u);
    EXPECT_EQ(number_of(fma_rn(x, y, y)).a, kPrime - 10);
    EXPECT_EQ((x - x).handle(), 0u) << "zero is one handle, however it arises";
  });
}

TEST(Field, reduction_holds_at_the_edges) {
  for (detail::uint128 x :
       {detail::uint128{0}, detail::uint128{kPrime - 1}, detail::uint128{kPrime},
        detail::uint128{kPrime} + 1, detail::uint128{kPrime} * 2, detail::uint128{kPrime} * kPrime,
        detail::uint128{kOrder} * kOrder, detail::uint128{kPrime} << 19,
        (detail::uint128{1} << 122) - 1}) {
    EXPECT_EQ(detail::mod_prime(x), static_cast<uint64_t>(x % kPrime));
    EXPECT_EQ(detail::mod_order(x), static_cast<uint64_t>(x % kOrder));
  }
}

TEST(Field, exponentials_and_logarithms_are_the_homomorphisms) {
  run([] {
    const field x = number(1, 123456789012345), y = number(1, kOrder - 77);
    EXPECT_EQ(number_of(exp2_approx(x + y)).a, number_of(exp2_approx(x) * exp2_approx(y)).a);
    EXPECT_EQ(number_of(exp2_approx(number(0, 1))).a, 37u);
    EXPECT_EQ(number_of(exp2_approx(number(0, kOrder - 1)) * exp2_approx(number(0, 1))).a, 1u);
    const field d = exp2_approx(x) + exp2_approx(y), e = exp2_approx(x) * number(3, 3);
    const field lse = x + log2_approx(d), other = y + log2_approx(e);
    EXPECT_EQ(number_of(exp2_approx(lse)).a, number_of(exp2_approx(x) * d).a);
    EXPECT_EQ(number_of(exp2_approx(lse - other) * exp2_approx(other)).a,
              number_of(exp2_approx(lse)).a);
    // Natural and back.
    const field natural = lse * 0.6931471805599453f;
    EXPECT_EQ(number_of(natural).u, kLn2);
    EXPECT_EQ(number_of(exp2_approx(natural * 1.4426950408889634f)).a,
              number_of(exp2_approx(lse)).a);
    EXPECT_EQ(number_of(field(1.4426950408889634f)).a, kLog2E);
  });
}

/// What is left of an expression that has no value.
void expect_undefined(field x, detail::Reason reason, uint64_t simt::WideNumber::*part) {
  EXPECT_EQ(number_of(x).*part, kUndefined + reason);
}

TEST(Field, what_has_no_value_is_undefined_with_its_reason) {
  run([] {
    constexpr auto a = &simt::WideNumber::a;
    const field zero = 0.0f, weight = exp2_approx(number(2, 2)), none = field::of_handle(1u << 30);
    const field infinity = arch::neg_infinity(), log = log2_approx(weight);
    expect_undefined(rcp_approx(zero), detail::kInverse, a);
    expect_undefined(exp2_approx(weight), detail::kWeight, a);
    expect_undefined(log * weight, detail::kLogarithm, a);
    expect_undefined(exp2_approx(log * 0.6931471805599453f), detail::kUnit, a);
    expect_undefined(exp2_approx(log + log * 0.5f), detail::kUnit, a);
    expect_undefined(infinity - infinity, detail::kInfinite, a);
    expect_undefined(infinity * zero, detail::kInfinite, a);
    expect_undefined(none, detail::kNoHandle, a);
    expect_undefined(zero * none, detail::kNoHandle, a);
    expect_undefined(weight + none, detail::kNoHandle, a);
    expect_undefined(field(__builtin_nanf("")), detail::kNotANumber, a);
    EXPECT_EQ(max_num(none, weight).handle(), weight.handle()) << "as NaN, it loses";
    EXPECT_FALSE(none < none || none == none || none > weight);
  });
}

TEST(Field, minus_infinity_is_the_smallest_score_and_weighs_nothing) {
  run([] {
    const field infinity = arch::neg_infinity(), score = number(0, 0) + number(0, 1);
    EXPECT_TRUE(arch::is_neg_infinity(infinity));
    EXPECT_TRUE(infinity < score && !(score < infinity) && !(infinity < infinity));
    EXPECT_TRUE(arch::is_neg_infinity(fma_rn(infinity, field(0.125f), score)));
    EXPECT_EQ(exp2_approx(infinity).handle(), 0u);
    EXPECT_TRUE(arch::is_neg_infinity(log2_approx(field(0.0f))));
    EXPECT_EQ(max_num(infinity, score).handle(), score.handle());
  });
}

TEST(Field, mma_is_the_sum_of_products) {
  // Word of A at (row, k): a literal; of B at (k, column): packed numbers and literals in turn.
  const auto a_of = [](uint32_t row, uint32_t k) { return (row * 977 + k * 31337) & 0x7fff; };
  const auto b_of = [](uint32_t k, uint32_t n) { return uint64_t{k + 1} * 0x123456789abu + n; };
  run(
      [&] {
        const uint32_t lane = lane_id(), g = lane / 4, t = lane % 4 * 2;
        uint32_t a[4], b[2];
        for (uint32_t r = 0; r < 4; ++r) {
          const uint32_t row = g + r % 2 * 8, k = t + r / 2 * 8;
          a[r] = a_of(row, k) | a_of(row, k + 1) << 16;
        }
        for (uint32_t r = 0; r < 2; ++r) {
          const uint32_t k = t + 8 * r;
          b[r] = pack2<field16>(number(b_of(k, g), b_of(k, g) + 9),
                                number(b_of(k + 1, g), b_of(k + 1, g) + 9));
        }
        field c[4] = {number(7, 8), field(0.0f), field(0.0f), field(0.0f)};
        mma_m16n8k16<field16>(c, a, b);
        for (uint32_t i = 0; i < 4; ++i) {
          detail::uint128 sum_a = i == 0 ? 7 : 0, sum_b = i == 0 ? 8 : 0;
          for (uint32_t k = 0; k < 16; ++k) {
            const detail::uint128 x = a_of(g + i / 2 * 8, k);
            sum_a += x * b_of(k, t + i % 2);
            sum_b += x * (b_of(k, t + i % 2) + 9);
          }
          EXPECT_EQ(number_of(c[i]).a, static_cast<uint64_t>(sum_a % kPrime));
          EXPECT_EQ(number_of(c[i]).b, static_cast<uint64_t>(sum_b % kOrder));
        }
      },
      32);
}

TEST(Field, mma_of_a_word_that_is_no_literal_is_undefined_even_times_zero) {
  run(
      [] {
        const uint32_t a[4] = {lane_id() == 0 ? 0xffffu : 1u, 0, 0, 0}, b[2] = {0, 0};
        field c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        mma_m16n8k16<field16>(c, a, b);
        const bool poisoned = lane_id() < 4; // row 0
        EXPECT_EQ(defined(number_of(c[0]).a), !poisoned);
        EXPECT_TRUE(defined(number_of(c[2]).a));
      },
      32);
}

TEST(Field, packed_numbers_of_other_warps_are_no_numbers) {
  run(
      [] {
        if (warp_id() == 0) (void)detail::pack_field(number(5, 5));
        block_barrier();
        EXPECT_EQ(defined(detail::number_of_word(0x8000).a), warp_id() == 0);
      },
      64);
}

TEST(Field, needs_a_stream) {
  simt::LaunchConfig config;
  EXPECT_EQ(simt::launch(nullptr, config, [] { (void)number_of(field(0.5f)); }),
            simt::LaunchStatus::kHazard);
}

} // namespace
} // namespace assay::n_simt::arch
