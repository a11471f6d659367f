// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/declaration.h"

#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>

namespace assay::oracle {
namespace {

/// From 1 on, an error as large as what it is an error of, a limit says nothing.
struct ErrorField {
  const char *name;
  double assay_arithmetic::*value;
};
constexpr ErrorField kErrors[] = {
    {"q_abs_error", &assay_arithmetic::q_abs_error},
    {"exp2_rel_error", &assay_arithmetic::exp2_rel_error},
    {"log2_abs_error", &assay_arithmetic::log2_abs_error},
    {"rcp_rel_error", &assay_arithmetic::rcp_rel_error},
    {"tanh_abs_error", &assay_arithmetic::tanh_abs_error},
};

struct CountField {
  const char *name;
  int32_t assay_arithmetic::*value;
  int32_t most;
};
constexpr CountField kCounts[] = {
    {"mma_block", &assay_arithmetic::mma_block, 1024},
    {"mma_fraction_bits", &assay_arithmetic::mma_fraction_bits, 1022}, // 2^-F normal in double
    {"p_format", &assay_arithmetic::p_format, ASSAY_FORMAT_E5M2},
    {"sum_format", &assay_arithmetic::sum_format, ASSAY_FORMAT_BF16},
    {"exponential", &assay_arithmetic::exponential, ASSAY_EXP_BASE2},
    {"sum_depth", &assay_arithmetic::sum_depth, 1 << 20}, // so many fp32 roundings: 1/16
    {"tile_tokens", &assay_arithmetic::tile_tokens, 1 << 30},
    {"max_parallel_states", &assay_arithmetic::max_parallel_states, 1 << 20},
    {"max_splits", &assay_arithmetic::max_splits, 1 << 16},
    {"merge_stages", &assay_arithmetic::merge_stages, 16},
};
static_assert(sizeof(assay_arithmetic) == 10 * sizeof(int32_t) + 5 * sizeof(double),
              "a new field needs its range here, its text in plugin.h and a case in the test");

template <class Value>
std::string outside(const char *name, Value value, const std::string &expected) {
  std::ostringstream text;
  text << name << " is " << value << ", expected " << expected;
  return text.str();
}

} // namespace

std::string declaration_defect(const assay_arithmetic &arithmetic) {
  for (const CountField &field : kCounts) {
    const int32_t value = arithmetic.*field.value;
    if (value < 0 || value > field.most)
      return outside(field.name, value, "0 .. " + std::to_string(field.most));
  }
  for (const ErrorField &field : kErrors) {
    const double value = arithmetic.*field.value;
    if (!(value >= 0.0 && value < 1.0)) return outside(field.name, value, "0 to below 1"); // NaN
  }
  const int block = arithmetic.mma_block, bits = arithmetic.mma_fraction_bits;
  if (block > 0 && std::ldexp(block + 1.0, -bits) >= 1.0)
    return outside("mma_fraction_bits", bits,
                   "2^bits above mma_block + 1 = " + std::to_string(block + 1));
  if ((arithmetic.max_splits > 0) != (arithmetic.merge_stages > 0))
    return outside("merge_stages", arithmetic.merge_stages,
                   arithmetic.max_splits > 0 ? "1 .. 16 beside max_splits above 0"
                                             : "0 beside max_splits of 0");
  return "";
}

void require_declaration(const assay_arithmetic &arithmetic) {
  const std::string defect = declaration_defect(arithmetic);
  if (!defect.empty()) throw std::invalid_argument("oracle: declared arithmetic: " + defect);
}

} // namespace assay::oracle
