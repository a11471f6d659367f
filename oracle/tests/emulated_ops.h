// SPDX-License-Identifier: Apache-2.0
// The instructions of the emulated kernel.
#pragma once

#include <cstdint>

#include "oracle/exact/dtype.h"
#include "oracle/tests/emulation.h"

namespace assay::oracle::test {

/** Declared; the emulation uses half of it on top of what its formula costs. */
inline constexpr double kTanhError = 0x1p-21;

class Ops {
public:
  Ops(const Emulation &emulation, assay_dtype dtype) : emulation_(emulation), dtype_(dtype) {}

  /** c + sum a_i * b_i over `count` elements, b strided: the chain of blocks of one accumulator. */
  /// `a_format`: of a, where it is not the operand type.
  float accumulate(float c, const float *a, const float *b, int count, int b_stride,
                   const Format *a_format = nullptr) const;

  float exp2(float x) const;
  float log2(float x) const;
  /// Functions of the kernel's base. Half of the natural ones convert their argument and result.
  float exponential(float x) const;
  float logarithm(float x) const;
  float rcp(float x) const;
  float round(float x) const; ///< to the operand type
  static float round(const Format &format, float x);
  float narrow(const Format &format, float x) const; ///< half of the kernels cut tf32 off
  float tanh(float x) const; ///< 1 - 2 / (1 + 2^x), and up to the declared error

private:
  float block(float c, const float *a, const float *b, int count, int b_stride,
              const Format &a_format) const;
  int noise(float x, uint64_t salt) const; ///< -1, 0 or 1

  Emulation emulation_;
  assay_dtype dtype_;
};

/** Round to `bits` significant bits, to nearest even. */
float round_bits(float x, int bits);

} // namespace assay::oracle::test
