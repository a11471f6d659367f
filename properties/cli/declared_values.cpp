// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/declared_values.h"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace assay {
namespace {

struct Count {
  std::string_view name;
  int32_t assay_arithmetic::*value;
};
constexpr Count kCounts[] = {{"mma_block", &assay_arithmetic::mma_block},
                             {"mma_fraction_bits", &assay_arithmetic::mma_fraction_bits},
                             {"sum_depth", &assay_arithmetic::sum_depth},
                             {"tile_tokens", &assay_arithmetic::tile_tokens},
                             {"max_parallel_states", &assay_arithmetic::max_parallel_states},
                             {"max_splits", &assay_arithmetic::max_splits},
                             {"merge_stages", &assay_arithmetic::merge_stages}};

struct Error {
  std::string_view name;
  double assay_arithmetic::*value;
};
constexpr Error kErrors[] = {{"q_abs_error", &assay_arithmetic::q_abs_error},
                             {"exp2_rel_error", &assay_arithmetic::exp2_rel_error},
                             {"log2_abs_error", &assay_arithmetic::log2_abs_error},
                             {"rcp_rel_error", &assay_arithmetic::rcp_rel_error},
                             {"tanh_abs_error", &assay_arithmetic::tanh_abs_error}};

// The loader has refused other numbers.
constexpr const char *kFormats[] = {"fp32", "call", "fp16", "bf16", "e4m3", "e5m2"};
constexpr const char *kBases[] = {"natural", "base2"};

std::string error_text(double x) {
  int exponent = 0;
  return x != 0 && std::frexp(x, &exponent) == 0.5 ? fmt::format("2^{}", exponent - 1)
                                                   : fmt::format("{:.4g}", x);
}

std::string one_value(const assay_arithmetic &a, std::string_view name) {
  for (const Count &field : kCounts)
    if (field.name == name) return std::to_string(a.*field.value);
  for (const Error &field : kErrors)
    if (field.name == name) return error_text(a.*field.value);
  if (name == "p_format") return kFormats[a.p_format];
  if (name == "sum_format") return kFormats[a.sum_format];
  if (name == "exponential") return kBases[a.exponential];
  throw std::logic_error("assay_arithmetic has no field " + std::string(name));
}

} // namespace

std::string declared_value(const assay_arithmetic &arithmetic, std::string_view fields) {
  const size_t comma = fields.find(", ");
  std::string out = one_value(arithmetic, fields.substr(0, comma));
  if (comma != std::string_view::npos)
    out += ", " + declared_value(arithmetic, fields.substr(comma + 2));
  return out;
}

} // namespace assay
