// SPDX-License-Identifier: Apache-2.0
#include "properties/case/classify.h"
#include "properties/case/directed.h"

#include <map>

#include <gtest/gtest.h>

#include "properties/case/problem_gen.h"

namespace assay {
namespace {

TEST(Classify, ImportantClassesAreCommonEnough) {
  for (Family family :
       {Family::kPaged, Family::kCascade, Family::kMergeState, Family::kMergeStates}) {
    constexpr int kDraws = 3000;
    std::map<std::string, int> counts;
    for (int i = 0; i < kDraws; ++i)
      for (const auto &name :
           classify(directed(draw_problem(check_limits(), family, 1000 + i), check_limits(), i)))
        ++counts[name];
    // A run that lacks a class draws 4,000 more to find it, without running them. Two rare things
    // at once may be that much rarer.
    for (const auto &name : important_classes(family))
      EXPECT_GE(counts[name], name.ends_with("_prefix_tree") ? kDraws / 200 : kDraws / 40)
          << name_of(family) << " " << name;
  }
}

TEST(Classify, NamesTheBoundary) {
  Problem p = decode({}, check_limits());
  p.page_size = 16;
  p.seq_lens = {17};
  auto has = [&](const char *name) {
    auto names = classify(p);
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(has("partial_last_page"));
  EXPECT_TRUE(has("tile_edge"));
  EXPECT_FALSE(has("full_last_page"));
  EXPECT_FALSE(has("empty_row"));
  p.seq_lens = {16};
  EXPECT_TRUE(has("full_last_page"));
  EXPECT_FALSE(has("partial_last_page"));
  p.seq_lens = {20};
  EXPECT_FALSE(has("tile_edge"));
  p.seq_lens = {0};
  EXPECT_TRUE(has("empty_row"));
}

} // namespace
} // namespace assay
