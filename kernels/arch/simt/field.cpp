// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/simt/field_number.h"

#include <array>
#include <bit>
#include <cmath>
#include <numbers>

namespace assay::n_simt::arch {
namespace detail {
namespace {

simt::NumberTable &table() {
  simt::NumberTable *t = simt::number_table;
  if (t == nullptr)
    simt::report(simt::HazardKind::kUnmodelled, "numbers behind handles need a stream",
                 simt::Site::here());
  if (t->rows.empty()) t->rows = {{0, 0, 1, 1}, {1, 1, 1, 1}, undefined(kInfinite)};
  return *t;
}

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base = mul_prime(base, base))
    if (exponent & 1) result = mul_prime(result, base);
  return result;
}
uint64_t inverse(uint64_t x) { return x == 1 ? 1 : power(x, kPrime - 2); }

/// g^exponent from tables of g^(i 256^k): seven products.
uint64_t power_of_generator(uint64_t exponent) {
  static const auto kPowers = [] {
    std::array<std::array<uint64_t, 256>, 8> t{};
    uint64_t base = kGenerator;
    for (auto &row : t) {
      row[0] = 1;
      for (size_t i = 1; i < row.size(); ++i)
        row[i] = mul_prime(row[i - 1], base);
      base = mul_prime(row.back(), base);
    }
    return t;
  }();
  uint64_t result = kPowers[0][exponent & 255];
  for (int k = 1; k < 8; ++k)
    result = mul_prime(result, kPowers[k][exponent >> (8 * k) & 255]);
  return result;
}

/// f of two parts. Where a part is undefined, the result is that part.
template <class F>
uint64_t both(uint64_t x, uint64_t y, F f) {
  if (!defined(x)) return x;
  return defined(y) ? f(x, y) : y;
}
/// The part u log m of a number. m = u = 1 stands for no logarithm.
struct Logarithm {
  uint64_t m, u;
};
Logarithm logarithm(uint64_t m, uint64_t u) {
  return m == 1 || u == 0 ? Logarithm{1, 1} : Logarithm{m, u};
}
Logarithm sum_of_logarithms(const WideNumber &x, const WideNumber &y) {
  if (x.m == 1) return {y.m, y.u};
  if (y.m == 1) return {x.m, x.u};
  if (x.u != y.u) return {kUndefined + kUnit, 1};
  return logarithm(both(x.m, y.m, mul_prime), x.u);
}
/// The logarithm of x * y, where one factor has a logarithm and the other one scales it.
Logarithm scaled_logarithm(const WideNumber &x, const WideNumber &y) {
  if (x.m == 1 && y.m == 1) return {1, 1};
  if (x.m != 1 && y.m != 1) return {kUndefined + kUnit, 1};
  const WideNumber &log = x.m == 1 ? y : x, &factor = x.m == 1 ? x : y;
  if (!defined(log.m)) return {log.m, 1};
  if (!defined(factor.b)) return {factor.b, 1};
  return logarithm(log.m, mod_order(uint128{log.u} * factor.b));
}

WideNumber sum(const WideNumber &x, const WideNumber &y) {
  const auto a = [](uint64_t s, uint64_t t) { return mod_prime(uint128{s} + t); };
  const auto b = [](uint64_t s, uint64_t t) { return mod_order(uint128{s} + t); };
  const Logarithm log = sum_of_logarithms(x, y);
  return {both(x.a, y.a, a), both(x.b, y.b, b), log.m, log.u};
}
WideNumber negative(const WideNumber &x) {
  WideNumber y = x;
  if (defined(x.a)) y.a = x.a == 0 ? 0 : kPrime - x.a;
  if (defined(x.b)) y.b = x.b == 0 ? 0 : kOrder - x.b;
  if (defined(x.m)) y.m = inverse(x.m);
  return y;
}
WideNumber times(const WideNumber &x, const WideNumber &y) {
  const auto b = [](uint64_t s, uint64_t t) { return mod_order(uint128{s} * t); };
  const Logarithm log = scaled_logarithm(x, y);
  return {both(x.a, y.a, mul_prime), both(x.b, y.b, b), log.m, log.u};
}

bool infinite(field x) { return x.handle() == kNegInfinity; }
field none(Reason reason) { return enter(undefined(reason)); }

/// What an arbitrary order of residues compares. Small residues are not small in it.
uint64_t scrambled(uint64_t a) { return a * 0x9e3779b97f4a7c15u; }

} // namespace

WideNumber number_of(field x) {
  simt::NumberTable &t = table();
  return x.handle() < t.rows.size() ? t.rows[x.handle()] : undefined(kNoHandle);
}

field enter(const WideNumber &number) {
  simt::NumberTable &t = table();
  if (number.a <= 1 && number.b == number.a && number.m == 1)
    return field::of_handle(static_cast<uint32_t>(number.a));
  if (t.rows.size() >= kMaxNumbers)
    simt::report(simt::HazardKind::kUnmodelled, "more than 2^26 numbers in one run",
                 simt::Site::here());
  t.rows.push_back(number);
  return field::of_handle(static_cast<uint32_t>(t.rows.size() - 1));
}

field add(field x, const WideNumber &number) {
  return infinite(x) ? x + enter(number) : enter(sum(number_of(x), number));
}

WideNumber number_of_word(uint16_t word) {
  if (word < 0x8000) return {word, word, 1, 1};
  const auto &ring = table().rings[simt::thread_view.thread / simt::kLanes];
  const uint32_t place = word & 0x7fffu;
  if (place >= ring.handles.size()) return undefined(kNoHandle);
  return number_of(field::of_handle(ring.handles[place]));
}

uint16_t pack_field(field x) {
  auto &ring = table().rings[simt::thread_view.thread / simt::kLanes];
  if (ring.handles.empty()) ring.handles.assign(simt::NumberTable::Ring::kCapacity, ~0u);
  const uint32_t place = ring.next++ % simt::NumberTable::Ring::kCapacity;
  ring.handles[place] = x.handle();
  return static_cast<uint16_t>(0x8000u | place);
}

} // namespace detail

using namespace detail;

field::field(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value == 0.0f || value == 1.0f) {
    handle_ = value == 0.0f ? kZero : kOne;
  } else if (std::isinf(value) && value < 0) {
    handle_ = kNegInfinity;
  } else {
    auto [entry, fresh] = table().constants.try_emplace(bits, 0);
    const uint64_t residue = value == std::numbers::log2e_v<float> ? kLog2E
                             : value == std::numbers::ln2_v<float> ? kLn2
                                                                   : bits;
    if (fresh && std::isfinite(value))
      entry->second = enter({residue, residue, 1, 1}).handle();
    else if (fresh)
      entry->second = none(kNotANumber).handle();
    handle_ = entry->second;
  }
}

field operator+(field x, field y) {
  if (x.handle() == kZero) return y;
  if (y.handle() == kZero) return x;
  if (infinite(x) && infinite(y)) return x;
  if (infinite(x)) return defined(number_of(y).b) ? x : y;
  if (infinite(y)) return defined(number_of(x).b) ? y : x;
  return enter(sum(number_of(x), number_of(y)));
}
field operator-(field x, field y) {
  if (infinite(y)) return none(kInfinite);
  if (infinite(x)) return x + y;
  return enter(sum(number_of(x), negative(number_of(y))));
}
field operator*(field x, field y) {
  if (infinite(x) || infinite(y)) {
    const WideNumber other = number_of(infinite(x) ? y : x);
    const bool finite = !(infinite(x) && infinite(y)) && defined(other.b) && other.b != 0;
    return finite ? field::of_handle(kNegInfinity) : none(kInfinite);
  }
  return enter(times(number_of(x), number_of(y)));
}
field fma_rn(field x, field y, field z) { return x * y + z; }

bool operator==(field x, field y) {
  const uint64_t a = number_of(x).a, b = number_of(y).a;
  return infinite(x) || infinite(y) ? x.handle() == y.handle() : defined(a) && a == b;
}
bool operator<(field x, field y) {
  if (infinite(x)) return !infinite(y) && defined(number_of(y).b);
  if (infinite(y)) return false;
  const WideNumber s = number_of(x), t = number_of(y);
  if (defined(s.b) && defined(t.b)) return s.b < t.b;
  return defined(s.a) && defined(t.a) && scrambled(s.a) < scrambled(t.a);
}
field max_num(field x, field y) {
  const auto number = [](field v) { return infinite(v) || defined(number_of(v).b); };
  if (!number(x)) return y;
  return number(y) && x < y ? y : x;
}
bool is_neg_infinity(field x) { return infinite(x); }

field exp2_approx(field x) {
  if (infinite(x)) return field::of_handle(kZero);
  const WideNumber n = number_of(x);
  uint64_t a =
      both(n.b, n.m, [](uint64_t b, uint64_t m) { return mul_prime(power_of_generator(b), m); });
  if (defined(a) && n.u != 1) a = kUndefined + kUnit;
  return enter({a, kUndefined + kWeight, 1, 1});
}

field log2_approx(field x) {
  const WideNumber n = number_of(x);
  if (infinite(x)) return none(kInfinite);
  if (n.a == 0) return field::of_handle(kNegInfinity);
  return enter({kUndefined + kLogarithm, 0, n.a, 1});
}

field rcp_approx(field x) {
  const WideNumber n = number_of(x);
  const uint64_t a = !defined(n.a) ? n.a : n.a == 0 ? kUndefined + kInverse : inverse(n.a);
  return enter({a, kUndefined + kWeight, 1, 1});
}

} // namespace assay::n_simt::arch
