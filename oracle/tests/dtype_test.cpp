// SPDX-License-Identifier: Apache-2.0
// Elements as numbers, every pattern of bits.
#include "oracle/exact/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/abi/assay_judge.h"

namespace assay::oracle::test {
namespace {

/// Values 0, 1, 2, ... of a type of 8 or 16 bits, as they lie in memory.
std::vector<unsigned char> all_patterns(assay_dtype dtype) {
  std::vector<unsigned char> bytes;
  for (uint32_t bits = 0; bits < 1u << 8 * element_size(dtype); ++bits)
    for (int i = 0; i < element_size(dtype); ++i)
      bytes.push_back(static_cast<unsigned char>(bits >> 8 * i));
  return bytes;
}

// Rows are read by load_elements, single elements by load_element.
TEST(Elements, OfARowAreThoseReadAlone) {
  const std::vector<assay_dtype> types = {ASSAY_FP16, ASSAY_BF16, ASSAY_E4M3, ASSAY_E5M2,
                                          ASSAY_INT8};
  for (const assay_dtype dtype : types) {
    const std::vector<unsigned char> bytes = all_patterns(dtype);
    std::vector<float> row(bytes.size() / element_size(dtype));
    load_elements(dtype, bytes.data(), static_cast<int>(row.size()), row.data());
    for (size_t i = 0; i < row.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(row[i]),
                std::bit_cast<uint32_t>(load_element(dtype, bytes.data(), static_cast<int64_t>(i))))
          << "dtype " << dtype << " bits " << i;
  }
}

// By the definitions of the formats, apart from how they are decoded.
TEST(Elements, HaveTheValuesOfTheirFormats) {
  const auto value = [](assay_dtype dtype, uint16_t bits) {
    float out;
    load_elements(dtype, &bits, 1, &out);
    return out;
  };
  EXPECT_EQ(value(ASSAY_FP16, 0x3C01), 1 + 0x1p-10f);
  EXPECT_EQ(value(ASSAY_FP16, 0x8001), -0x1p-24f);
  EXPECT_EQ(value(ASSAY_FP16, 0x7BFF), 65504.0f);
  EXPECT_EQ(value(ASSAY_BF16, 0xBF81), -1 - 0x1p-7f);
  EXPECT_EQ(value(ASSAY_E4M3, 0x7E), 448.0f);
  EXPECT_EQ(value(ASSAY_E4M3, 0x81), -0x1p-9f);
  EXPECT_TRUE(std::isnan(value(ASSAY_E4M3, 0x7F)));
  EXPECT_EQ(value(ASSAY_E5M2, 0x7B), 57344.0f);
  EXPECT_TRUE(std::isinf(value(ASSAY_E5M2, 0xFC)));
}

} // namespace
} // namespace assay::oracle::test
