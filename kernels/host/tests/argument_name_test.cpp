// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/argument_name.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ArgumentName, is_what_the_caller_wrote) {
  EXPECT_EQ(text_of(ArgumentName("q_stride_head")), "q_stride_head");
  EXPECT_EQ(text_of(ArgumentName(kNoLevel, "kv", "k")), "kv.k");
  EXPECT_EQ(text_of(ArgumentName(0, "kv", "rows")), "levels[0].kv.rows");
  EXPECT_EQ(text_of(ArgumentName(12, nullptr, "segment_indptr")), "levels[12].segment_indptr");
}

TEST(ArgumentName, is_text_in_a_message) {
  const ArgumentName name(2, "kv", "page_size");
  EXPECT_EQ((format<ArgumentName, int>("{} is {}", name, 0)), "levels[2].kv.page_size is 0");
}

} // namespace
} // namespace assay
