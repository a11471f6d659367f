// SPDX-License-Identifier: Apache-2.0
// The fields of assay_arithmetic, once. Whoever reads, writes or checks a declaration field by
// field goes through this table, so a new field is a row here and its meaning in plugin.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/abi/plugin.h"

namespace assay::oracle {

/// In which direction of a field the bounds get wider.
enum class Wider : uint8_t {
  kMore,
  kLess,
  kAny,  ///< they get another shape: neither is inside the other
  kWords ///< by best_first
};

struct ArithmeticField {
  const char *name;
  /// One of the two: a count or the index of a word, 0 .. most; or an error, 0 to below 1. (From 1
  /// on, as large as what it is an error of, a limit says nothing.)
  int32_t assay_arithmetic::*count;
  double assay_arithmetic::*error;
  int32_t most = 0;
  std::span<const char *const> words = {}; ///< what the numbers 0 .. most are called
  Wider wider = Wider::kMore;
  std::span<const char *const> best_first = {}; ///< the words, from the tightest bounds on
  bool later = false; ///< declarations written before ABI 0.10 do not have it: they mean 0
};

/** In the struct's order. */
std::span<const ArithmeticField> arithmetic_fields();

/** Null where there is none of that name. */
const ArithmeticField *arithmetic_field(std::string_view name);

} // namespace assay::oracle
