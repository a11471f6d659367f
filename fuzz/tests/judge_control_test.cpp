// SPDX-License-Identifier: Apache-2.0
// Judges that are wrong, each caught on the committed seeds.
#include <gtest/gtest.h>

#include "fuzz/judge_checks.h"
#include "fuzz/tests/seeds.h"

namespace assay::fuzz {
namespace {

using Attention = decltype(JudgeUnderTest::attention);

/// Whether some seed shows that the judge is wrong.
bool caught(Attention attention, const char *(*last_error)() = assay_judge_last_error) {
  const JudgeUnderTest judge{attention, last_error};
  const auto check = [&](Input input) { return check_judge_with(judge, input); };
  return !first_violation("fuzz_judge", check).empty();
}

TEST(JudgeControl, TheJudgeItselfHolds) { EXPECT_FALSE(caught(assay_judge_attention)); }

TEST(JudgeControl, SeedsAreJudgedAndRefused) {
  static int judged, refused;
  judged = refused = 0;
  caught([](const assay_judge_attention_params *p, assay_judge_report *r) {
    const assay_status status = assay_judge_attention(p, r);
    ++(status == ASSAY_OK ? judged : refused);
    return status;
  });
  EXPECT_GE(judged, 10);
  EXPECT_GE(refused, 10);
}

TEST(JudgeControl, AReportThatDoesNotAddUpIsCaught) {
  EXPECT_TRUE(caught([](const assay_judge_attention_params *p, assay_judge_report *r) {
    const assay_status status = assay_judge_attention(p, r);
    r->claimed += 1;
    return status;
  }));
  EXPECT_TRUE(caught([](const assay_judge_attention_params *p, assay_judge_report *r) {
    const assay_status status = assay_judge_attention(p, r);
    r->verdict = ASSAY_JUDGE_INSIDE; // whatever was found
    return status;
  }));
}

TEST(JudgeControl, AnInternalErrorIsNoRefusal) {
  EXPECT_TRUE(caught([](const assay_judge_attention_params *p, assay_judge_report *r) {
    const assay_status status = assay_judge_attention(p, r);
    return status == ASSAY_OK ? status : assay_status{ASSAY_INTERNAL};
  }));
}

TEST(JudgeControl, ARefusalWithoutAWordIsCaught) {
  EXPECT_TRUE(caught(assay_judge_attention, [] { return ""; }));
}

TEST(JudgeControl, AVerdictThatFollowsTheThreadsIsCaught) {
  EXPECT_TRUE(caught([](const assay_judge_attention_params *p, assay_judge_report *r) {
    const assay_status status = assay_judge_attention(p, r);
    if (p->threads > 1) r->median_budget += 1;
    return status;
  }));
}

} // namespace
} // namespace assay::fuzz
