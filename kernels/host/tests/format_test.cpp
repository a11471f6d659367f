// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace assay {
namespace {

TEST(Format, numbers_and_text_in_place) {
  EXPECT_EQ(format("nothing"), "nothing");
  EXPECT_EQ(format("{} is {}, expected {} to {}", "batch", -1, int64_t{0}, uint64_t{1} << 40),
            "batch is -1, expected 0 to 1099511627776");
  EXPECT_EQ(format("levels[{}].kv", 3), "levels[3].kv");
  EXPECT_EQ(format("{}{}", std::string("a"), "{}"), "a{}"); // an argument is no pattern
}

TEST(Format, floats_as_short_as_they_read_back) {
  EXPECT_EQ(format("{} {} {}", 0.1f, -0.0f, 2.0), "0.1 -0 2");
  EXPECT_EQ(format("{}", std::numeric_limits<float>::quiet_NaN()), "nan");
  EXPECT_EQ(format("{}", -std::numeric_limits<double>::infinity()), "-inf");
}

} // namespace
} // namespace assay
