// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/declaration.h"

#include "oracle/bounds/arithmetic_fields.h"

#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>

namespace assay::oracle {
namespace {

template <class Value>
std::string outside(const char *name, Value value, const std::string &expected) {
  std::ostringstream text;
  text << name << " is " << value << ", expected " << expected;
  return text.str();
}

} // namespace

std::string declaration_defect(const assay_arithmetic &arithmetic) {
  for (const ArithmeticField &field : arithmetic_fields()) {
    if (field.count != nullptr) {
      const int32_t value = arithmetic.*field.count;
      if (value < 0 || value > field.most)
        return outside(field.name, value, "0 .. " + std::to_string(field.most));
    } else {
      const double value = arithmetic.*field.error;
      if (!(value >= 0.0 && value < 1.0)) return outside(field.name, value, "0 to below 1"); // NaN
    }
  }
  for (const int32_t word : arithmetic.reserved)
    if (word != 0) return outside("reserved", word, "0");
  const int block = arithmetic.mma_block, bits = arithmetic.mma_fraction_bits;
  if (block > 0 && std::ldexp(block + 1.0, -bits) >= 1.0)
    return outside("mma_fraction_bits", bits,
                   "2^bits above mma_block + 1 = " + std::to_string(block + 1));
  if ((arithmetic.max_splits > 0) != (arithmetic.merge_stages > 0))
    return outside("merge_stages", arithmetic.merge_stages,
                   arithmetic.max_splits > 0 ? "1 .. 16 beside max_splits above 0"
                                             : "0 beside max_splits of 0");
  const bool stored = arithmetic.partial_format != ASSAY_FORMAT_FP32;
  if ((arithmetic.stored_merges > 0) != stored ||
      arithmetic.stored_merges > arithmetic.merge_stages)
    return outside("stored_merges", arithmetic.stored_merges,
                   stored ? "1 .. merge_stages" : "0 beside partial_format of 0");
  if (block > 0 && arithmetic.accumulator != ASSAY_ACCUMULATOR_FP32)
    return outside("accumulator", arithmetic.accumulator, "0 (fp32) beside mma_block above 0");
  if (arithmetic.kv_format == ASSAY_FORMAT_E4M3 || arithmetic.kv_format == ASSAY_FORMAT_E5M2)
    return outside("kv_format", arithmetic.kv_format, "0 .. 3 or 6");
  if (arithmetic.p_format == ASSAY_FORMAT_E4M3 && arithmetic.p_scale_log2 > 8)
    return outside("p_scale_log2", arithmetic.p_scale_log2, "0 .. 8 with weights in e4m3");
  return "";
}

void require_declaration(const assay_arithmetic &arithmetic) {
  const std::string defect = declaration_defect(arithmetic);
  if (!defect.empty()) throw std::invalid_argument("oracle: declared arithmetic: " + defect);
}

} // namespace assay::oracle
