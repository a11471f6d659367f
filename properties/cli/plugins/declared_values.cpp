// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/plugins/declared_values.h"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "oracle/bounds/arithmetic_fields.h"

namespace assay {
namespace {

std::string error_text(double x) {
  int exponent = 0;
  return x != 0 && std::frexp(x, &exponent) == 0.5 ? fmt::format("2^{}", exponent - 1)
                                                   : fmt::format("{:.4g}", x);
}

std::string one_value(const assay_arithmetic &a, std::string_view name) {
  const oracle::ArithmeticField *field = oracle::arithmetic_field(name);
  if (field == nullptr)
    throw std::logic_error("assay_arithmetic has no field " + std::string(name));
  if (field->error != nullptr) return error_text(a.*field->error);
  const int32_t value = a.*field->count;
  // The loader has refused other numbers.
  return field->words.empty() ? std::to_string(value) : field->words[static_cast<size_t>(value)];
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
