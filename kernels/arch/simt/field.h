// SPDX-License-Identifier: Apache-2.0
// Exact arithmetic for kernels: a number type of the CPU executor in which two kernels that are
// equal as algebra return equal results, at any length, without a tolerance.
//
// A number is (a, b, u log m) with p = 2^61 - 1 (prime) and g = 37 (a primitive root):
//   a in F_p       the value where it is summed and multiplied: weights, V, O, row sums
//   b in Z_(p-1)   the value where it is an exponent: scores and LSE
//   u log m        the logarithm that an LSE carries beside b, as a symbol, with m in F_p^* and u
//                  in Z_(p-1); absent (m = u = 1) from everything else
// +, -, * act on a and b. Beyond that
//   exp2(x)            = (g^b m, -, 0) if u = 1: a weight
//   log2(y)            = (-, 0, log a), so that LSE = max + log2(d) is (-, b_max, log d)
//   u log m + u log n  = u log (m n), so that exp2(LSE_1 - LSE_2) is exact
//   c * (u log m)      = (u c) log m
//   reciprocal(y)      = (1 / a, -, 0)
//   max, <             the order of b. Weights have no b: an arbitrary order of a, so that a kernel
//                      that branches on a weight must be right either way
// Natural LSE is base 2 times ln 2:
//   fl(ln 2)           = 1 / L modulo p - 1, with L = 1000003
//   fl(log2 e)         = L
// A part that does not exist (-) is undefined and knows the reason; what depends on it is
// undefined, too. Reasons are a sum of logarithms of different u, exp2 with u other than 1, 1 / 0,
// an exponent that is a weight, a word that is no handle, and more (field_number.h). Undefined
// behaves like NaN: 0 times undefined is undefined, and max ignores it. -inf is a number of its
// own.
//
// A kernel built from +, -, *, exp2, log2, reciprocal and max computes a fixed rational function of
// its inputs and of g^(differences of scores). Random inputs show a function that is not the right
// one: one output or score may agree by chance with probability about 2^-14 (literals have 15
// bits), but not the many of a case. Rounding, overflow and the choice of another maximum, if all
// use the same one, change no function: this arithmetic does not see them.
//
// `field` is a handle of 4 bytes, a row of the stream's simt::NumberTable. `field16`, the element
// type of Q, K and V, is a word of 2 bytes. A word below 0x8000 is a literal (a = b = the word).
// Any other word is a number that this warp has packed: P on its way to the next mma. O is stored
// as `field`. The device has no such arithmetic, and needs none: its kernels are the same source.
#pragma once

#include <cstdint>

#include "kernels/simt/device.h"

namespace assay::n_simt::arch {

class field {
public:
  field() = default;
  /// Converts a constant or a scale. 0, 1 and -inf are themselves; ln 2 and log2 e are the values
  /// above; any other value has a = b = its 32 bits.
  field(float value);

  friend field operator+(field x, field y);
  friend field operator-(field x, field y);
  friend field operator*(field x, field y);
  friend bool operator<(field x, field y);
  /// Whether two numbers are equal as weights: in their a.
  friend bool operator==(field x, field y);
  field operator-() const { return field(0.0f) - *this; }
  field &operator+=(field y) { return *this = *this + y; }
  field &operator*=(field y) { return *this = *this * y; }
  friend bool operator>(field x, field y) { return y < x; }
  friend bool operator>=(field x, field y) { return y < x || x == y; }

  uint32_t handle() const { return handle_; }
  static field of_handle(uint32_t handle) {
    field x;
    x.handle_ = handle;
    return x;
  }

private:
  uint32_t handle_;
};

struct field16 {
  uint16_t bits;
};

field exp2_approx(field x);
field log2_approx(field x);
field rcp_approx(field x);
field max_num(field x, field y);
field fma_rn(field x, field y, field z);
bool is_neg_infinity(field x);

template <class E>
struct Arithmetic;
template <>
struct Arithmetic<field16> {
  using Number = field;
  using Output = field;
};
template <>
struct Arithmetic<field> {
  using Number = field;
  using Output = field;
};

namespace detail {
uint16_t pack_field(field x);
} // namespace detail

template <class E>
inline uint32_t pack2(field lo, field hi) {
  static_assert(sizeof(E) == 2);
  const uint32_t low = detail::pack_field(lo);
  return low | static_cast<uint32_t>(detail::pack_field(hi)) << 16;
}

} // namespace assay::n_simt::arch
