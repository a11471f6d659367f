// SPDX-License-Identifier: Apache-2.0
// Matrix loads, layouts and the arithmetic of mma_m16n8k16.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/mma.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/tests/exact_mma.h"
#include "kernels/arch/tests/test_device.cuh"

namespace assay::ASSAY_TARGET::arch_test {

using assay::arch_test::exact_block;
using assay::arch_test::ExactFormat;

// ---- 8 x 8 loads ----

// 32 rows of 8; row r holds 16-bit values r * 8 + column.
struct LdmatrixKernel {
  int matrices;
  bool transposed;
  uint32_t *out; // [lane][4]
  ASSAY_DEVICE void operator()() const {
    struct alignas(16) Storage {
      arch::Vec4 row[32];
    };
    Storage &shared = arch::shared_storage<Storage>();
    const uint32_t lane = arch::lane_id();
    const uint32_t first = lane * 8 | (lane * 8 + 1) << 16;
    arch::shared_store(&shared.row[lane],
                       arch::Vec4{first, first + 0x20002u, first + 0x40004u, first + 0x60006u});
    arch::warp_barrier();
    // Rows are handed over in reverse, so that addresses matter; unused lanes pass nonsense.
    const uint32_t used = static_cast<uint32_t>(matrices) * 8;
    const void *row = lane < used ? &shared.row[used - 1 - lane] : &shared.row[0] + 1;
    uint32_t r1[1], r2[2], r4[4] = {};
    if (matrices == 1) {
      transposed ? arch::ldmatrix_x1_trans(r1, row) : arch::ldmatrix_x1(r1, row);
      r4[0] = r1[0];
    } else if (matrices == 2) {
      transposed ? arch::ldmatrix_x2_trans(r2, row) : arch::ldmatrix_x2(r2, row);
      r4[0] = r2[0], r4[1] = r2[1];
    } else {
      transposed ? arch::ldmatrix_x4_trans(r4, row) : arch::ldmatrix_x4(r4, row);
    }
    for (uint32_t i = 0; i < 4; ++i)
      arch::global_store(out + lane * 4 + i, r4[i]);
  }
};

ASSAY_ARCH_TEST(ldmatrix_layouts) {
  for (const int matrices : {1, 2, 4})
    for (const bool transposed : {false, true}) {
      Device device;
      uint32_t *out = device.upload(std::vector<uint32_t>(128, 0u));
      device.run({1, 32, 512}, LdmatrixKernel{matrices, transposed, out});
      const auto got = device.download(out, 128);
      const auto element = [&](uint32_t i, uint32_t r, uint32_t c) {
        return (static_cast<uint32_t>(matrices) * 8 - 1 - (i * 8 + r)) * 8 + c;
      };
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (uint32_t i = 0; i < static_cast<uint32_t>(matrices); ++i) {
          const uint32_t g = lane / 4, t = lane % 4 * 2;
          const uint32_t lo = transposed ? element(i, t, g) : element(i, g, t);
          const uint32_t hi = transposed ? element(i, t + 1, g) : element(i, g, t + 1);
          EXPECT_EQ(got[lane * 4 + i], lo | hi << 16) << matrices << transposed << " " << lane;
        }
    }
}

struct MovmatrixKernel {
  uint32_t *out;
  ASSAY_DEVICE void operator()() const {
    const uint32_t lane = arch::lane_id(), first = lane * 2;
    arch::global_store(out + lane, arch::movmatrix_trans(first | (first + 1) << 16));
  }
};

ASSAY_ARCH_TEST(movmatrix_transposes) {
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(32, 0u));
  device.run({1, 32}, MovmatrixKernel{out});
  const auto got = device.download(out, 32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4 * 2;
    EXPECT_EQ(got[lane], (t * 8 + g) | ((t + 1) * 8 + g) << 16);
  }
}

// ---- multiply-accumulate ----

// One m16n8k16 per block; operands in plain row-major order in global memory.
template <class E>
struct MmaKernel {
  const uint16_t *a; // [block][16][16]
  const uint16_t *b; // [block][16][8]
  float *c;          // [block][16][8], in place
  ASSAY_DEVICE uint32_t pair(const uint16_t *lo, const uint16_t *hi) const {
    return arch::global_load(lo) | static_cast<uint32_t>(arch::global_load(hi)) << 16;
  }
  ASSAY_DEVICE void operator()() const {
    const uint32_t lane = arch::lane_id(), g = lane / 4, t = lane % 4 * 2;
    const size_t block = arch::block_idx_x();
    const uint16_t *A = a + block * 256, *B = b + block * 128;
    float *C = c + block * 128;
    uint32_t ra[4], rb[2];
    float rc[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const uint16_t *at = A + (g + i % 2 * 8) * 16 + t + i / 2 * 8;
      ra[i] = pair(at, at + 1);
      rc[i] = arch::global_load(C + (g + i / 2 * 8) * 8 + t + i % 2);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const uint16_t *at = B + (t + i * 8) * 8 + g;
      rb[i] = pair(at, at + 8);
    }
    arch::mma_m16n8k16<E>(rc, ra, rb);
    for (uint32_t i = 0; i < 4; ++i)
      arch::global_store(C + (g + i / 2 * 8) * 8 + t + i % 2, rc[i]);
  }
};

template <class E>
double value_of(uint16_t bits);
template <>
inline double value_of<arch::bf16>(uint16_t bits) {
  return arch::detail::bf16_to_float(bits);
}
template <>
inline double value_of<arch::fp16>(uint16_t bits) {
  return arch::detail::fp16_to_float(bits);
}
template <class E>
constexpr bool kIsBf16 = std::is_same_v<E, arch::bf16>;

struct MmaCase {
  std::vector<uint16_t> a, b;
  std::vector<float> c;
};

template <class E>
std::vector<float> run_mma(const MmaCase &values) {
  Device device;
  const uint16_t *a = device.upload(values.a), *b = device.upload(values.b);
  float *c = device.upload(values.c);
  device.run({static_cast<uint32_t>(values.c.size() / 128), 32}, MmaKernel<E>{a, b, c});
  return device.download(c, values.c.size());
}

inline uint32_t bits_of(float x) { return arch::detail::bits_of(x); }

template <class E>
void compare_with_exact(const MmaCase &values) {
  const auto got = run_mma<E>(values);
  const ExactFormat format =
      kIsBf16<E> ? assay::arch_test::kExactBf16 : assay::arch_test::kExactFp16;
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t block = i / 128, m = i % 128 / 8, n = i % 8;
    std::vector<double> a(16), b(16);
    for (size_t k = 0; k < 16; ++k) {
      a[k] = value_of<E>(values.a[block * 256 + m * 16 + k]);
      b[k] = value_of<E>(values.b[block * 128 + k * 8 + n]);
    }
    const float want = exact_block(values.c[i], a, b, format, 25);
    if (bits_of(got[i]) == bits_of(want)) continue;
    if (++wrong <= 3)
      ADD_FAILURE() << "block " << block << " row " << m << " column " << n << ": got " << got[i]
                    << ", the model says " << want << ", accumulator " << values.c[i];
  }
  EXPECT_EQ(wrong, 0u) << "of " << got.size();
}

// Small integers: every order of summation is exact, so this is about layout only.
template <class E>
void check_layout() {
  Random random(1);
  MmaCase values;
  std::vector<int> a(256), b(128), c(128);
  for (auto &x : a)
    x = random.between(-8, 8);
  for (auto &x : b)
    x = random.between(-8, 8);
  for (auto &x : c)
    x = random.between(-100, 100);
  const auto encode = [](int x) {
    return kIsBf16<E> ? arch::detail::bf16_from_float(static_cast<float>(x))
                      : arch::detail::fp16_from_float(static_cast<float>(x));
  };
  for (const int x : a)
    values.a.push_back(encode(x));
  for (const int x : b)
    values.b.push_back(encode(x));
  values.c.assign(c.begin(), c.end());
  const auto got = run_mma<E>(values);
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 8; ++n) {
      int want = c[m * 8 + n];
      for (size_t k = 0; k < 16; ++k)
        want += a[m * 16 + k] * b[k * 8 + n];
      EXPECT_EQ(got[m * 8 + n], static_cast<float>(want)) << m << " " << n;
    }
}

ASSAY_ARCH_TEST(mma_layout) {
  check_layout<arch::bf16>();
  check_layout<arch::fp16>();
}

// Finite patterns with exponents within `spread` of the middle of the format, some zeros.
template <class E>
uint16_t random_pattern(Random &random, int spread) {
  constexpr int kMantissa = kIsBf16<E> ? 7 : 10, kBias = kIsBf16<E> ? 127 : 15;
  if (random.between(0, 15) == 0) return static_cast<uint16_t>(random.between(0, 1) << 15);
  const int largest = kIsBf16<E> ? 254 : 30;
  const int field = std::min(largest, std::max(0, kBias + random.between(-spread, spread)));
  const int fraction = random.between(0, (1 << kMantissa) - 1);
  return static_cast<uint16_t>(random.between(0, 1) << 15 | field << kMantissa | fraction);
}

template <class E>
MmaCase random_case(Random &random, size_t blocks, int spread, int c_spread) {
  MmaCase values;
  for (size_t i = 0; i < blocks * 256; ++i)
    values.a.push_back(random_pattern<E>(random, spread));
  for (size_t i = 0; i < blocks * 128; ++i)
    values.b.push_back(random_pattern<E>(random, spread));
  for (size_t i = 0; i < blocks * 128; ++i) {
    const float mantissa = 1.0f + static_cast<float>(random.bits() >> 41) * 0x1p-23f;
    const float magnitude = std::ldexp(mantissa, random.between(-c_spread, c_spread));
    values.c.push_back(random.between(0, 7) == 0   ? 0.0f
                       : random.between(0, 1) == 0 ? magnitude
                                                   : -magnitude);
  }
  return values;
}

// 36,864 results a round; ASSAY_MMA_ROUNDS=N for a campaign on a device.
int mma_rounds() {
  const char *rounds = std::getenv("ASSAY_MMA_ROUNDS");
  return rounds == nullptr ? 1 : std::max(1, std::atoi(rounds));
}

ASSAY_ARCH_TEST(mma_truncates_like_the_block_model) {
  Random random(2);
  for (int round = 0; round < mma_rounds(); ++round) {
    for (const int spread : {0, 1, 3, 7, 14}) {
      compare_with_exact<arch::bf16>(random_case<arch::bf16>(random, 24, spread, 2 * spread + 6));
      compare_with_exact<arch::fp16>(random_case<arch::fp16>(random, 24, spread, 2 * spread + 6));
    }
    // fp16 exponents reach the subnormals, bf16 sums reach fp32's.
    compare_with_exact<arch::fp16>(random_case<arch::fp16>(random, 24, 20, 40));
    compare_with_exact<arch::bf16>(random_case<arch::bf16>(random, 24, 60, 120));
  }
}

// The accumulator alone: kept exactly where no product pushes e_max up, truncated where one does.
ASSAY_ARCH_TEST(mma_truncates_the_accumulator) {
  MmaCase values;
  values.a.assign(256, 0);
  values.b.assign(128, 0);
  values.c.assign(128, 0.0f);
  const uint16_t one = 0x3f80, two_to_26 = 0x4c80;
  for (size_t m = 0; m < 16; ++m)
    values.a[m * 16] = one;
  values.b[0] = two_to_26; // column 0 only
  for (size_t m = 0; m < 16; ++m) {
    values.c[m * 8] = m % 2 ? -3.75f : 3.75f;
    values.c[m * 8 + 1] = 1.0f + static_cast<float>(m) * 0x1p-23f;
  }
  const auto got = run_mma<arch::bf16>(values);
  for (size_t m = 0; m < 16; ++m) {
    // 2^26 + 3.75: the grid is 2, so 3.75 counts as 2; then the sum has 24 bits, a step of 4.
    EXPECT_EQ(got[m * 8], m % 2 ? 67108860.0f : 67108864.0f) << m; // 2^26 - 2 truncates to - 4
    EXPECT_EQ(bits_of(got[m * 8 + 1]), bits_of(values.c[m * 8 + 1]));
  }
  compare_with_exact<arch::bf16>(values);
}

ASSAY_ARCH_TEST(mma_handles_nan_and_infinity) {
  MmaCase values;
  values.a.assign(256, 0x3f80); // 1
  values.b.assign(128, 0x3f80);
  values.c.assign(128, 0.0f);
  values.a[0 * 16 + 3] = 0x7f80;                                // row 0: inf
  values.a[1 * 16 + 3] = 0xff80;                                // row 1: -inf
  values.a[2 * 16 + 3] = 0x7fc0;                                // row 2: NaN
  values.a[3 * 16 + 3] = 0x7f80, values.a[3 * 16 + 4] = 0xff80; // row 3: inf - inf
  values.c[4 * 8] = INFINITY, values.c[5 * 8] = NAN;            // rows 4, 5, column 0
  values.b[3 * 8 + 7] = 0;                                      // column 7: inf * 0 in rows 0, 1
  const auto got = run_mma<arch::bf16>(values);
  for (size_t n = 0; n < 8; ++n) {
    if (n == 7) {
      EXPECT_TRUE(std::isnan(got[n]) && std::isnan(got[8 + n]));
    } else {
      EXPECT_EQ(got[n], INFINITY);
      EXPECT_EQ(got[8 + n], -INFINITY);
    }
    EXPECT_EQ(bits_of(got[2 * 8 + n]), 0x7fffffffu);
    EXPECT_TRUE(std::isnan(got[3 * 8 + n]));
    EXPECT_EQ(got[6 * 8 + n], n == 7 ? 15.0f : 16.0f);
  }
  EXPECT_EQ(got[4 * 8], INFINITY);
  EXPECT_TRUE(std::isnan(got[5 * 8]));
  EXPECT_EQ(got[4 * 8 + 1], 16.0f);
}

// What the specification leaves open, one aspect each: a device that differs names it by the test
// that fails. Element (0, 0) of products a[k] * b[k] and accumulator c, everything else zero.
template <class E>
uint32_t one_element(const std::vector<uint16_t> &a, const std::vector<uint16_t> &b, float c) {
  MmaCase values;
  values.a.assign(256, 0);
  values.b.assign(128, 0);
  values.c.assign(128, 0.0f);
  for (size_t k = 0; k < a.size(); ++k)
    values.a[k] = a[k], values.b[k * 8] = b[k];
  values.c[0] = c;
  return bits_of(run_mma<E>(values)[0]);
}

inline constexpr uint16_t kBf16One = 0x3f80, kFp16One = 0x3c00;

ASSAY_ARCH_TEST(mma_zero_products_do_not_raise_e_max) {
  // 0 * 2^100 next to 2^-60: with the zero's stored exponent in e_max the grid would be 2^-51.
  EXPECT_EQ(one_element<arch::bf16>({0, 0x2180}, {0x7180, kBf16One}, 0.0f), bits_of(0x1p-60f));
}

ASSAY_ARCH_TEST(mma_subnormal_factors_are_not_normalised) {
  // 2^-24 is stored with exponent -14, so the grid is 2^-39 and 2^-45 is lost.
  EXPECT_EQ(one_element<arch::fp16>({1}, {kFp16One}, 0x1p-45f), bits_of(0x1p-24f));
  EXPECT_EQ(one_element<arch::fp16>({1}, {kFp16One}, 0x1p-38f), bits_of(0x1p-24f + 0x1p-38f));
}

ASSAY_ARCH_TEST(mma_overflows_to_infinity) {
  EXPECT_EQ(one_element<arch::bf16>({0x7f00}, {0x4000}, 0.0f), 0x7f800000u);
  EXPECT_EQ(one_element<arch::bf16>({0xff00}, {0x4000}, 0.0f), 0xff800000u);
  // Beyond the range in between only: exact sum 0, the 1 is below the grid.
  EXPECT_EQ(one_element<arch::bf16>({0x7f00, 0x7f00}, {0x4000, 0xc000}, 1.0f), 0u);
}

ASSAY_ARCH_TEST(mma_zero_sums_are_positive) {
  EXPECT_EQ(one_element<arch::bf16>({}, {}, -0.0f), 0u);
  EXPECT_EQ(one_element<arch::bf16>({kBf16One, kBf16One}, {kBf16One, 0xbf80}, 0.0f), 0u);
}

ASSAY_ARCH_TEST(mma_keeps_subnormal_results) {
  EXPECT_EQ(one_element<arch::bf16>({}, {}, 0x1p-149f), 1u);
  // 2^-140 * 1.5 + 2^-149: exact in fp32's subnormals.
  EXPECT_EQ(one_element<arch::bf16>({0x1fc0}, {0x1980}, 0x1p-149f), 0x301u);
}

// The test must be able to fail: two fraction bits fewer, or rounding to nearest, is seen.
ASSAY_ARCH_TEST(mma_comparison_sees_another_model) {
  Random random(3);
  const MmaCase values = random_case<arch::bf16>(random, 4, 7, 20);
  const auto got = run_mma<arch::bf16>(values);
  size_t differ_fraction = 0, differ_nearest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    std::vector<double> a(16), b(16);
    double sum = values.c[i];
    for (size_t k = 0; k < 16; ++k) {
      a[k] = value_of<arch::bf16>(values.a[i / 128 * 256 + i % 128 / 8 * 16 + k]);
      b[k] = value_of<arch::bf16>(values.b[i / 128 * 128 + k * 8 + i % 8]);
      sum += a[k] * b[k];
    }
    differ_fraction += bits_of(got[i]) !=
                       bits_of(exact_block(values.c[i], a, b, assay::arch_test::kExactBf16, 23));
    differ_nearest += got[i] != static_cast<float>(sum);
  }
  EXPECT_GT(differ_fraction, 20u);
  EXPECT_GT(differ_nearest, 20u);
}

} // namespace assay::ASSAY_TARGET::arch_test
