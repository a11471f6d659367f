// SPDX-License-Identifier: Apache-2.0
// Conversions, exhaustively or at every boundary of rounding, and fp32 functions.
#include <cmath>
#include <limits>

#include "kernels/arch/convert.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/math.cuh"
#include "kernels/arch/tests/test_device.cuh"

namespace assay::ASSAY_TARGET::arch_test {

// A format by its definition, nothing shared with the code under test.
struct FormatSpec {
  int bits, mantissa, bias;
  bool has_infinity; // otherwise the all-ones exponent is ordinary and one code is NaN
  bool saturates;
  double value(uint32_t code) const { // finite codes
    const int field = static_cast<int>(code >> mantissa) & ((1 << (bits - 1 - mantissa)) - 1);
    const int fraction = static_cast<int>(code) & ((1 << mantissa) - 1);
    const double magnitude = field == 0
                                 ? std::ldexp(fraction, 1 - bias - mantissa)
                                 : std::ldexp((1 << mantissa) + fraction, field - bias - mantissa);
    return code >> (bits - 1) ? -magnitude : magnitude;
  }
  uint32_t largest() const { // code of the largest finite value
    const uint32_t all_ones = (1u << (bits - 1)) - 1;
    return has_infinity ? all_ones - (1u << mantissa) : all_ones - 1;
  }
};
template <class E>
constexpr FormatSpec kSpec{};
template <>
inline constexpr FormatSpec kSpec<arch::bf16>{16, 7, 127, true, false};
template <>
inline constexpr FormatSpec kSpec<arch::fp16>{16, 10, 15, true, false};
template <>
inline constexpr FormatSpec kSpec<arch::e4m3>{8, 3, 7, false, true};
template <>
inline constexpr FormatSpec kSpec<arch::e5m2>{8, 2, 15, true, true};

template <class E>
using BitsOf = decltype(E::bits);

template <class E>
struct ToFloatKernel {
  float *out;
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::block_idx_x() * arch::block_dim() + arch::thread_idx();
    arch::global_store(out + i, arch::to_float(E{static_cast<BitsOf<E>>(i)}));
  }
};

template <class E>
void check_to_float() {
  const FormatSpec spec = kSpec<E>;
  const uint32_t codes = 1u << spec.bits;
  Device device;
  float *out = device.upload(std::vector<float>(codes, 1.0f));
  device.run({codes / 256, 256}, ToFloatKernel<E>{out});
  const auto got = device.download(out, codes);
  for (uint32_t code = 0; code < codes; ++code) {
    const uint32_t magnitude = code & (codes / 2 - 1);
    if (magnitude <= spec.largest()) {
      const float want = static_cast<float>(spec.value(code));
      ASSERT_EQ(arch::detail::bits_of(got[code]), arch::detail::bits_of(want)) << code;
    } else if (spec.has_infinity && magnitude == spec.largest() + 1) {
      ASSERT_EQ(got[code], code >> (spec.bits - 1) ? -INFINITY : INFINITY) << code;
    } else {
      ASSERT_TRUE(std::isnan(got[code])) << code;
    }
  }
}

ASSAY_ARCH_TEST_ONCE(to_float_of_every_code) {
  check_to_float<arch::bf16>();
  check_to_float<arch::fp16>();
  check_to_float<arch::e4m3>();
  check_to_float<arch::e5m2>();
}

template <class E>
struct FromFloatKernel {
  const float *in;
  BitsOf<E> *out;
  uint32_t count;
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::block_idx_x() * arch::block_dim() + arch::thread_idx();
    if (i < count) arch::global_store(out + i, arch::from_float<E>(arch::global_load(in + i)).bits);
  }
};

// Rounding is monotone, so it is right everywhere if it is right at every value, at every midpoint
// of neighbours, and one fp32 step to either side of both.
template <class E>
void check_from_float() {
  const FormatSpec spec = kSpec<E>;
  const uint32_t sign = 1u << (spec.bits - 1);
  const uint32_t past = spec.largest() + 1; // infinity, or saturation
  std::vector<float> in;
  std::vector<uint32_t> want;
  const auto add = [&](float x, uint32_t code) {
    in.push_back(x), want.push_back(code);
    in.push_back(-x), want.push_back(code | sign);
  };
  const auto below = [](float x) { return std::nextafterf(x, 0.0f); };
  const auto above = [](float x) { return std::nextafterf(x, INFINITY); };
  for (uint32_t code = 0; code <= spec.largest(); ++code) {
    const double value = spec.value(code);
    const double next =
        code == spec.largest() ? 2 * value - spec.value(code - 1) : spec.value(code + 1);
    const uint32_t next_code = code == spec.largest() ? (spec.saturates ? code : past) : code + 1;
    const float exact = static_cast<float>(value), middle = static_cast<float>((value + next) / 2);
    add(exact, code);
    add(above(exact), code);
    if (static_cast<double>(middle) != (value + next) / 2) continue; // beyond fp32's own range
    add(below(middle), code);
    add(middle, code % 2 == 0 ? code : next_code);
    add(above(middle), next_code);
    if (code < spec.largest()) add(below(static_cast<float>(next)), next_code);
  }
  const uint32_t overflow = spec.saturates ? spec.largest() : past;
  add(INFINITY, overflow);
  add(std::numeric_limits<float>::max(), overflow);
  add(std::numeric_limits<float>::denorm_min(), 0);

  const uint32_t nan = spec.bits == 16 ? 0x7fff : 0x7f;
  in.push_back(NAN), want.push_back(nan);
  in.push_back(-NAN), want.push_back(nan);
  in.push_back(arch::detail::float_of(0x7f800001u)), want.push_back(nan);

  Device device;
  const uint32_t count = static_cast<uint32_t>(in.size());
  const float *device_in = device.upload(in);
  BitsOf<E> *out = device.upload(std::vector<BitsOf<E>>(count, 0));
  device.run({(count + 255) / 256, 256}, FromFloatKernel<E>{device_in, out, count});
  const auto got = device.download(out, count);
  for (uint32_t i = 0; i < count; ++i)
    ASSERT_EQ(got[i], want[i]) << in[i] << " #" << i;
}

ASSAY_ARCH_TEST_ONCE(from_float_at_every_boundary) {
  check_from_float<arch::bf16>();
  check_from_float<arch::fp16>();
  check_from_float<arch::e4m3>();
  check_from_float<arch::e5m2>();
}

// ---- packed forms ----

template <class E>
struct PackKernel {
  uint32_t *out; // [65536] unpack then pack again
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::block_idx_x() * arch::block_dim() + arch::thread_idx();
    float lo, hi;
    arch::unpack2<E>(i | (65535 - i) << 16, lo, hi);
    arch::global_store(out + i, arch::pack2<E>(lo, hi));
  }
};

template <class E>
void check_pack() {
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(65536, 0u));
  device.run({256, 256}, PackKernel<E>{out});
  const auto got = device.download(out, 65536);
  const uint32_t infinity = kSpec<E>.largest() + 1;
  const auto round_trip = [&](uint32_t code) {
    return (code & 0x7fffu) > infinity ? 0x7fffu : code; // NaN is canonical
  };
  for (uint32_t i = 0; i < 65536; ++i)
    ASSERT_EQ(got[i], round_trip(i) | round_trip(65535 - i) << 16) << i;
}

ASSAY_ARCH_TEST_ONCE(pack_and_unpack_every_code) {
  check_pack<arch::bf16>();
  check_pack<arch::fp16>();
}

template <class D, class S>
struct WidenKernel {
  uint32_t *out; // [256][4]: consecutive pairs, then strided ones
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::thread_idx();
    const uint32_t codes = i | (i ^ 0x55) << 8 | (i ^ 0xaa) << 16 | (255 - i) << 24;
    uint32_t pairs[2], strided[2];
    arch::widen4<D, S>(codes, pairs);
    arch::widen4_strided<D, S>(codes, strided);
    for (int k = 0; k < 2; ++k) {
      arch::global_store(out + 4 * i + k, pairs[k]);
      arch::global_store(out + 4 * i + 2 + k, strided[k]);
    }
  }
};

template <class D, class S>
void check_widen() {
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(1024, 0u));
  device.run({1, 256}, WidenKernel<D, S>{out});
  const auto got = device.download(out, 1024);
  const FormatSpec wide = kSpec<D>, narrow = kSpec<S>;
  const auto check = [&](uint32_t code, uint32_t wide_code) {
    const uint32_t magnitude = code & 0x7f, wide_magnitude = wide_code & 0x7fff;
    if (magnitude <= narrow.largest()) {
      ASSERT_LE(wide_magnitude, wide.largest()) << code;
      ASSERT_EQ(wide.value(wide_code), narrow.value(code)) << code;
      ASSERT_EQ(wide_code >> 15, code >> 7) << code;
    } else if (narrow.has_infinity && magnitude == narrow.largest() + 1) {
      ASSERT_EQ(wide_code, (code & 0x80) << 8 | (wide.largest() + 1)) << code;
    } else {
      ASSERT_GT(wide_magnitude, wide.largest() + 1) << code;
    }
  };
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t codes[4] = {i, i ^ 0x55, i ^ 0xaa, 255 - i};
    for (uint32_t j = 0; j < 4; ++j) {
      check(codes[j], got[4 * i + j / 2] >> (16 * (j % 2)) & 0xffff);
      check(codes[j], got[4 * i + 2 + j % 2] >> (16 * (j / 2)) & 0xffff);
    }
  }
}

ASSAY_ARCH_TEST_ONCE(widen_every_fp8_code) {
  check_widen<arch::bf16, arch::e4m3>();
  check_widen<arch::bf16, arch::e5m2>();
  check_widen<arch::fp16, arch::e4m3>();
  check_widen<arch::fp16, arch::e5m2>();
}

// ---- functions ----

enum class Function { kExp2, kLog2, kRcp };

struct FunctionKernel {
  Function f;
  const float *in;
  float *out;
  uint32_t count;
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::block_idx_x() * arch::block_dim() + arch::thread_idx();
    if (i >= count) return;
    const float x = arch::global_load(in + i);
    arch::global_store(out + i, f == Function::kExp2   ? arch::exp2_approx(x)
                                : f == Function::kLog2 ? arch::log2_approx(x)
                                                       : arch::rcp_approx(x));
  }
};

inline std::vector<float> evaluate(Function f, const std::vector<float> &in) {
  Device device;
  const uint32_t count = static_cast<uint32_t>(in.size());
  const float *device_in = device.upload(in);
  float *out = device.upload(std::vector<float>(count, 7.0f));
  device.run({(count + 255) / 256, 256}, FunctionKernel{f, device_in, out, count});
  return device.download(out, count);
}

inline double ulp(double x) { return std::ldexp(1.0, std::max(std::ilogb(x), -126) - 23); }

ASSAY_ARCH_TEST_ONCE(exp2_accuracy) {
  Random random(4);
  std::vector<float> in;
  for (int i = -130; i <= 130; ++i)
    in.push_back(static_cast<float>(i));
  for (int i = 0; i < 20000; ++i)
    in.push_back(std::ldexp(static_cast<float>(random.between(-1 << 23, 1 << 23)),
                            random.between(-26, -17)));
  const auto got = evaluate(Function::kExp2, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const double want = static_cast<double>(std::exp2(static_cast<long double>(in[i])));
    if (want < 0x1p-126) {
      ASSERT_EQ(arch::detail::bits_of(got[i]), 0u) << in[i];
    } else if (in[i] == std::floor(in[i])) {
      ASSERT_EQ(got[i], static_cast<float>(want)) << in[i]; // infinite from 128 on
    } else if (want < 0x1p127) {
      ASSERT_LE(std::fabs(got[i] - want), 2 * ulp(want)) << in[i];
    }
  }
}

ASSAY_ARCH_TEST_ONCE(log2_and_rcp_accuracy) {
  Random random(5);
  std::vector<float> in;
  for (int i = -126; i <= 127; ++i)
    in.push_back(std::ldexp(1.0f, i));
  for (int i = 0; i < 20000; ++i)
    in.push_back(arch::detail::float_of(
        static_cast<uint32_t>(random.between(0x00800000, 0x7e000000)))); // rcp stays normal
  const auto logs = evaluate(Function::kLog2, in), inverses = evaluate(Function::kRcp, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const double log = static_cast<double>(std::log2(static_cast<long double>(in[i])));
    const double inverse = 1.0 / in[i];
    ASSERT_LE(std::fabs(logs[i] - log), 0x1p-22 * (1 + std::fabs(log))) << in[i];
    if (in[i] < 0x1p126f) {
      ASSERT_LE(std::fabs(inverses[i] - inverse), ulp(inverse)) << in[i];
    }
  }
}

ASSAY_ARCH_TEST_ONCE(functions_at_special_values) {
  const float inf = INFINITY, tiny = std::numeric_limits<float>::denorm_min();
  const auto exp2 = evaluate(Function::kExp2, {0.0f, -0.0f, -inf, inf, NAN, tiny, -tiny, -1000.0f});
  EXPECT_EQ(exp2[0], 1.0f);
  EXPECT_EQ(exp2[1], 1.0f);
  EXPECT_EQ(exp2[2], 0.0f);
  EXPECT_EQ(exp2[3], inf);
  EXPECT_TRUE(std::isnan(exp2[4]));
  EXPECT_EQ(exp2[5], 1.0f);
  EXPECT_EQ(exp2[6], 1.0f);
  EXPECT_EQ(exp2[7], 0.0f);
  const auto log2 = evaluate(Function::kLog2, {0.0f, -0.0f, tiny, -1.0f, inf, NAN, 1.0f});
  EXPECT_EQ(log2[0], -inf);
  EXPECT_EQ(log2[1], -inf);
  EXPECT_EQ(log2[2], -inf);
  EXPECT_TRUE(std::isnan(log2[3]));
  EXPECT_EQ(log2[4], inf);
  EXPECT_TRUE(std::isnan(log2[5]));
  EXPECT_EQ(log2[6], 0.0f);
  const auto rcp = evaluate(Function::kRcp, {0.0f, -0.0f, tiny, inf, -inf, NAN, 0x1p127f});
  EXPECT_EQ(rcp[0], inf);
  EXPECT_EQ(rcp[1], -inf);
  EXPECT_EQ(rcp[2], inf);
  EXPECT_EQ(rcp[3], 0.0f);
  EXPECT_EQ(arch::detail::bits_of(rcp[4]), 0x80000000u);
  EXPECT_TRUE(std::isnan(rcp[5]));
  EXPECT_EQ(rcp[6], 0.0f);
}

struct PairKernel {
  const float *in; // pairs
  float *out;      // [pair][3]
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::thread_idx();
    const float a = arch::global_load(in + 2 * i), b = arch::global_load(in + 2 * i + 1);
    arch::global_store(out + 3 * i, arch::max_num(a, b));
    arch::global_store(out + 3 * i + 1, arch::max_nan(a, b));
    arch::global_store(out + 3 * i + 2, arch::fma_rn(a, b, arch::neg_infinity()));
  }
};

ASSAY_ARCH_TEST_ONCE(maxima) {
  Device device;
  const std::vector<float> in = {1.0f, 2.0f, -0.0f, 0.0f, 0.0f, -0.0f, NAN,       1.0f,
                                 1.0f, NAN,  NAN,   NAN,  1.0f, -1.0f, -INFINITY, -INFINITY};
  const uint32_t pairs = static_cast<uint32_t>(in.size() / 2);
  const float *device_in = device.upload(in);
  float *out = device.upload(std::vector<float>(in.size() * 3, 9.0f));
  device.run({1, pairs}, PairKernel{device_in, out});
  const auto got = device.download(out, pairs * 3);
  const auto bits = [&](size_t i) { return arch::detail::bits_of(got[i]); };
  EXPECT_EQ(got[0], 2.0f);
  EXPECT_EQ(bits(3), 0u) << "+0 over -0";
  EXPECT_EQ(bits(6), 0u) << "+0 over -0";
  EXPECT_EQ(got[9], 1.0f);
  EXPECT_EQ(bits(10), 0x7fffffffu);
  EXPECT_EQ(got[12], 1.0f);
  EXPECT_EQ(bits(13), 0x7fffffffu);
  EXPECT_EQ(bits(15), 0x7fffffffu);
  EXPECT_EQ(got[19], 1.0f);
  EXPECT_EQ(got[21], -INFINITY);
  EXPECT_EQ(got[20], -INFINITY);
}

struct FmaKernel {
  const float *in;
  float *out;
  ASSAY_DEVICE void operator()() const {
    const float a = arch::global_load(in), b = arch::global_load(in + 1),
                c = arch::global_load(in + 2);
    arch::global_store(out, arch::fma_rn(a, b, c));
    arch::global_store(out + 1, a * b + c); // must stay two roundings on both targets
  }
};

ASSAY_ARCH_TEST_ONCE(fma_is_one_rounding_and_contraction_is_off) {
  Device device;
  const float *in = device.upload(std::vector<float>{1 + 0x1p-12f, 1 + 0x1p-12f, -1 - 0x1p-11f});
  float *out = device.upload(std::vector<float>(2, 0.0f));
  device.run({1, 1}, FmaKernel{in, out});
  const auto got = device.download(out, 2);
  EXPECT_EQ(got[0], 0x1p-24f);
  EXPECT_EQ(got[1], 0.0f);
}

} // namespace assay::ASSAY_TARGET::arch_test
