// SPDX-License-Identifier: Apache-2.0
// The text that a GPU runs of merges, run here.
#include "oracle/tests/random_merge.h"

namespace assay::oracle {
namespace {

using test::HostMemory;
using test::RandomMerge;

TEST(MergesOnDevice, SayWhatTheHostSays) {
  test::TiersCompared all;
  for (unsigned seed = 0; seed < 300; ++seed) {
    HostMemory memory;
    const RandomMerge call(seed, memory);
    ASSERT_EQ(merges_refuse(call.rows), "");
    const test::TiersCompared one =
        compare_merges(call, judge_merges_here(call.rows, call.outputs(), call.model, true));
    if (one.elements > 0) expect_agreement(one, static_cast<int>(seed));
    EXPECT_EQ(one.inside, one.rows) << "call " << seed;
    all.add(one);
  }
  EXPECT_GT(all.elements, 50'000u);
}

/// The first row with so many live states of head 0.
int row_with(const RandomMerge &call, size_t live) {
  MergeReader reader(call.rows, call.model);
  for (int row = 0; row < call.rows.out.rows(); ++row) {
    const MergeProblem &problem = reader.problem(row, 0);
    if (static_cast<size_t>(std::count_if(problem.lse.begin(), problem.lse.end(),
                                          [](float x) { return x > -INFINITY; })) == live)
      return row;
  }
  return -1;
}

TEST(MergesOnDevice, LeaveAWrongBitToTheHost) {
  int seen[3] = {};
  for (unsigned seed = 0; seed < 60; ++seed)
    for (size_t live = 0; live < 3; ++live) {
      HostMemory memory;
      const RandomMerge call(seed, memory);
      const int row = row_with(call, live);
      if (row < 0) continue;
      ++seen[live];
      // It is zero in all states. Of one, a zero of the other sign is wrong too.
      auto *o = static_cast<unsigned char *>(const_cast<void *>(call.outputs().o));
      const auto size = static_cast<int64_t>(element_size(call.rows.out.dtype));
      const int64_t last = call.at(row, 0, 17) * size + size - 1;
      o[last] ^= live == 1 ? 0x80 : 0x40;
      const TierReport report = judge_merges_here(call.rows, call.outputs(), call.model);
      ASSERT_EQ(report.open.size(), 1u) << seed;
      EXPECT_EQ(report.open[0].row, row);
      EXPECT_EQ(report.open[0].head, 0);
    }
  for (const int calls : seen)
    EXPECT_GT(calls, 3);
}

} // namespace
} // namespace assay::oracle
