// SPDX-License-Identifier: Apache-2.0
// What a gate makes of two libraries timed in turns.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/tools/gate/speed.h"
#include "properties/tools/gate/tests/gate_ids.h"

namespace assay::gate {
namespace {

json timed(const char *kernel, const char *cell, const char *speed, double ratio, int wrong = 0) {
  return {{"cell", cell},   {"kernel", kernel}, {"base_us", 10.0},  {"head_us", 10 * ratio},
          {"ratio", ratio}, {"control", 1.0},   {"p", 0.001},       {"speed", speed},
          {"wrong", wrong}, {"base_wrong", 0},  {"same_bits", true}};
}

TEST(Speed, SlowerIsRedForAPersonAndWrongOutputsForNobody) {
  const Figures same = judge_speed({{"duels",
                                     {timed("k", "a", "same", 1.01), timed("k", "b", "faster", 0.9),
                                      timed("k", "c", "inconclusive", 1.2)}}});
  EXPECT_TRUE(same.red.empty());
  EXPECT_EQ(same.notes, Ids{"k on the device: 0 of 3 cells slower, 1 faster, 1 inconclusive"});
  const Figures slower =
      judge_speed({{"duels", {timed("k", "a", "slower", 1.05), timed("k", "b", "slower", 1.2)}}});
  ASSERT_EQ(ids(slower.red), Ids{"slower"});
  EXPECT_TRUE(slower.red[0].acceptable);
  EXPECT_EQ(slower.red[0].text, "in 2 of 2 cells, most in b 10.00 -> 12.00 us (+20.0 %)");
  const Figures wrong = judge_speed({{"duels", {timed("k", "a", "faster", 0.1, 24)}}});
  ASSERT_EQ(ids(wrong.red), Ids{"timed-outputs"});
  EXPECT_FALSE(wrong.red[0].acceptable);
  const Figures refused = judge_speed(
      {{"duels",
        {{{"cell", "a"}, {"kernel", "k"}, {"skipped", "head_dim"}, {"head_refuses", true}},
         {{"cell", "b"}, {"kernel", "k"}, {"skipped", "fp8"}, {"head_refuses", false}}}}});
  EXPECT_EQ(ids(refused.red), Ids{"envelope-narrower"});
  EXPECT_TRUE(refused.notes.empty());
}

} // namespace
} // namespace assay::gate
