// SPDX-License-Identifier: Apache-2.0
// Random calls of assay_judge.h with masks, scales of tokens and blocks, and fp8 outputs: emulated
// kernels whose roundings take what they declare stay inside, wrong ones are found.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "oracle/tests/drawn_call.h"

namespace assay::oracle::test {
namespace {

using drawn::Call;
using drawn::Wrong;

struct Features {
  const char *name;
  bool mask, scales, out;
};
constexpr Features kMask{"masks", true, false, false}, kScales{"scales", false, true, false},
    kOut{"fp8 outputs", false, false, true}, kAll{"all", true, true, true};

uint64_t cases() {
  const char *more = std::getenv("ASSAY_JUDGE_CASES");
  return more ? std::strtoull(more, nullptr, 10) : 100;
}

TEST(JudgeCampaign, RightKernelsStayInside) {
  for (const Features &f : {kMask, kScales, kOut, kAll}) {
    uint64_t outputs = 0, judged = 0;
    double worst = 0.0;
    for (uint64_t seed = 0; seed < cases(); ++seed) {
      Call call(seed, f.mask, f.scales, f.out);
      const assay_judge_report report = call.judge(Wrong::kNothing);
      ASSERT_EQ(report.verdict, ASSAY_JUDGE_INSIDE)
          << f.name << " seed " << seed << " row " << report.worst.row << " head "
          << report.worst.head << " dim " << report.worst.dim << " got " << report.worst.got
          << " exact " << report.worst.exact << " allowed " << report.worst.allowed << " "
          << report.worst.reason;
      outputs += report.elements;
      judged += report.claimed;
      worst = std::max({worst, report.worst_ratio, report.worst_ratio_lse});
    }
    printf("%-12s %8lu outputs, %8lu judged, worst |error| / allowed %.3f\n", f.name, outputs,
           judged, worst);
    EXPECT_GT(judged, outputs * 9 / 10) << f.name;
    EXPECT_GT(worst, 0.5) << f.name << ": the emulation does not use what it may";
  }
}

TEST(JudgeCampaign, WrongKernelsAreFound) {
  struct Mistake {
    const char *name;
    Wrong wrong;
    Features features;
  };
  const Mistake mistakes[] = {
      {"mask ignored", Wrong::kMaskIgnored, kMask},
      {"mask of the next key", Wrong::kMaskOfTheNextKey, kMask},
      {"mask of the next query", Wrong::kMaskOfTheNextQuery, kMask},
      {"scales left out", Wrong::kScaleLeftOut, kScales},
      {"scales of the next token", Wrong::kScaleOfTheNextToken, kScales},
      {"scales of the next head", Wrong::kScaleOfTheNextHead, kScales},
      {"scales of the next block", Wrong::kScaleOfTheNextBlock, kScales},
      {"scales of K for V", Wrong::kScaleOfVFromK, kScales},
      {"scale of O left out", Wrong::kOutputScaleLeftOut, kOut},
      {"scale of O inverted", Wrong::kOutputScaleInverted, kOut},
      {"O truncated", Wrong::kOutputTruncated, kOut},
  };
  for (const Mistake &mistake : mistakes) {
    const Features &f = mistake.features;
    int found = 0, drawn = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Call call(seed, f.mask, f.scales, f.out);
      if (mistake.wrong == Wrong::kScaleOfTheNextBlock && call.blocks == 1) continue;
      ++drawn;
      found += call.judge(mistake.wrong).verdict == ASSAY_JUDGE_OUTSIDE;
    }
    printf("%-26s %d of %d\n", mistake.name, found, drawn);
    EXPECT_GE(found * 10, drawn * 6) << mistake.name;
  }
}

} // namespace
} // namespace assay::oracle::test
