// SPDX-License-Identifier: Apache-2.0
// A thin RAII face of MPFI: every operation rounds outward, so the exact value is always inside.
#pragma once

#include <mpfi.h>

namespace assay::oracle {

/// MPFR keeps constants and scratch numbers per thread, and leaves freeing them to the thread
/// (its manual, "Memory Handling"): workers of the runner come and go.
struct ThreadCaches {
  ~ThreadCaches() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
};

class Interval {
public:
  explicit Interval(int precision, double value = 0.0) {
    thread_local ThreadCaches freed_when_the_thread_ends;
    mpfi_init2(value_, precision);
    mpfi_set_d(value_, value);
  }
  Interval(const Interval &other) {
    mpfi_init2(value_, mpfi_get_prec(other.value_));
    mpfi_set(value_, other.value_);
  }
  Interval &operator=(const Interval &other) {
    mpfi_set(value_, other.value_);
    return *this;
  }
  ~Interval() { mpfi_clear(value_); }

  /** ln 2 at this precision. */
  static Interval ln2(int precision) {
    Interval result(precision);
    mpfi_const_log2(result.value_);
    return result;
  }

  Interval &operator+=(const Interval &b) { return mpfi_add(value_, value_, b.value_), *this; }
  Interval &operator-=(const Interval &b) { return mpfi_sub(value_, value_, b.value_), *this; }
  Interval &operator*=(const Interval &b) { return mpfi_mul(value_, value_, b.value_), *this; }
  Interval &operator/=(const Interval &b) { return mpfi_div(value_, value_, b.value_), *this; }
  Interval &operator+=(double b) { return mpfi_add_d(value_, value_, b), *this; }
  Interval &operator-=(double b) { return mpfi_sub_d(value_, value_, b), *this; }
  Interval &operator*=(double b) { return mpfi_mul_d(value_, value_, b), *this; }
  Interval &apply_exp2() { return mpfi_exp2(value_, value_), *this; }
  Interval &apply_log2() { return mpfi_log2(value_, value_), *this; }
  Interval &apply_tanh() { return mpfi_tanh(value_, value_), *this; }
  Interval &apply_abs() { return mpfi_abs(value_, value_), *this; }

  /** Exact comparisons of the ends. */
  bool certainly_at_most(double x) const { return mpfr_cmp_d(&value_->right, x) <= 0; }
  bool certainly_above(double x) const { return mpfr_cmp_d(&value_->left, x) > 0; }

  double middle() const { return mpfi_get_d(value_); }
  double width() const {
    mpfr_t diameter;
    mpfr_init2(diameter, 64);
    mpfi_diam_abs(diameter, value_);
    const double result = mpfr_get_d(diameter, MPFR_RNDU);
    mpfr_clear(diameter);
    return result;
  }

private:
  mpfi_t value_;
};

} // namespace assay::oracle
