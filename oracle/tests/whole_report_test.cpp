// SPDX-License-Identifier: Apache-2.0
// Reports of calls whose arrays lie elsewhere are those of calls that lie here.
#include <atomic>
#include <cstring>

#include "oracle/device/whole_report.h"
#include "oracle/tests/random_merge.h"
#include "oracle/tests/tiers_compare.h"

namespace assay::oracle {
namespace {

using test::HostMemory;
using test::RandomCall;

/// The GPU's text, and reads that are counted.
Elsewhere twin(std::atomic<size_t> &bytes_read) {
  return {
      .rows = [](const AttentionRows &rows, const CallOutputs &outputs,
                 const KernelModel &model) { return judge_tiers_here(rows, outputs, model); },
      .merges = [](const MergeRows &rows, const CallOutputs &outputs,
                   const KernelModel &model) { return judge_merges_here(rows, outputs, model); },
      .memory = Memory([&](void *to, const void *from, size_t bytes, size_t pitch, size_t rows) {
        bytes_read += bytes * rows;
        for (size_t i = 0; i < rows; ++i)
          std::memcpy(static_cast<char *>(to) + i * bytes,
                      static_cast<const char *>(from) + i * pitch, bytes);
      })};
}

void expect_same(const Report &there, const Report &here) {
  EXPECT_EQ(there.verdict, here.verdict);
  EXPECT_EQ(there.elements, here.elements);
  EXPECT_EQ(there.claimed, here.claimed);
  EXPECT_EQ(there.finding_count, here.finding_count);
  EXPECT_NEAR(there.worst_ratio_t0, here.worst_ratio_t0, 1e-9 * here.worst_ratio_t0);
  EXPECT_EQ(there.budgets.median(), here.budgets.median());
}

test::Options of_requests() {
  test::Options o;
  o.lengths = {300, 0, 120, 64};
  o.q_len = 2;
  return o;
}

TEST(WholeReport, IsThatOfTheHost) {
  HostMemory memory;
  RandomCall call(of_requests(), 3, memory);
  const KernelModel model{.arithmetic = call.model.arithmetic};
  std::atomic<size_t> bytes = 0;
  const auto judged = [&] {
    return whole_report(call.rows, call.outputs(), model, twin(bytes), 2);
  };
  expect_same(judged(), judge_call(call.rows, call.outputs(), model));
  *static_cast<uint16_t *>(call.o_of(1, 5, 77)) ^= 0x8000;
  const Report wrong = judged();
  expect_same(wrong, judge_call(call.rows, call.outputs(), model));
  ASSERT_EQ(wrong.finding_count, 1u);
  EXPECT_EQ(wrong.findings[0].request, 1);
  EXPECT_EQ(wrong.findings[0].head, 5);
  EXPECT_EQ(wrong.findings[0].dim, 77);
}

/// Without an order, one head of one row is a little too large: no element shows it.
TEST(WholeReport, JudgesWholeRows) {
  HostMemory memory;
  RandomCall call(of_requests(), 3, memory);
  call.model.arithmetic.max_splits = 64;
  const KernelModel model{.arithmetic = call.model.arithmetic};
  std::atomic<size_t> bytes = 0;
  const Report right = whole_report(call.rows, call.outputs(), model, twin(bytes), 2);
  EXPECT_EQ(right.verdict, Verdict::kInside);
  EXPECT_GT(right.worst_ratio_row, 0.0);
  const Report here = judge_call(call.rows, call.outputs(), model);
  EXPECT_NEAR(right.worst_ratio_row, here.worst_ratio_row, 1e-9);
  const assay_dtype dtype = call.rows.out.dtype;
  for (int dim = 0; dim < call.rows.out.dims; ++dim) {
    void *at = call.o_of(0, 0, dim);
    store_element(dtype, at, 0, load_element(dtype, at, 0) * 1.012f);
  }
  const Report wrong = whole_report(call.rows, call.outputs(), model, twin(bytes), 2);
  EXPECT_EQ(wrong.verdict, Verdict::kOutside);
  EXPECT_EQ(wrong.worst.dim, ElementReport::kRow);
  EXPECT_EQ(wrong.worst.request, 0);
  EXPECT_EQ(wrong.finding_count, 1u);
  EXPECT_EQ(wrong.elements, right.elements);
}

TEST(WholeReport, ReadsSomeRowsAlone) {
  HostMemory memory;
  test::Options many = of_requests();
  many.lengths.assign(40, 60);
  const RandomCall call(many, 4, memory);
  std::atomic<size_t> bytes = 0;
  whole_report(call.rows, call.outputs(), {.arithmetic = call.model.arithmetic}, twin(bytes), 1);
  // 64 pairs of 640: each the keys of one kv head, a query and an output.
  const size_t pair = size_t{62} * 128 * 2 * 2;
  EXPECT_GT(bytes, 32 * pair);
  EXPECT_LT(bytes, 70 * pair);
}

TEST(WholeReport, ReadsWhatTheGpuRefuses) {
  HostMemory memory;
  RandomCall call(of_requests(), 5, memory);
  call.rows.o_scale = 1.0f;
  call.rows.heads[0].sink = INFINITY;
  call.rows.sinks = true;
  const KernelModel model{.arithmetic = call.model.arithmetic};
  ASSERT_NE(tiers_refuse(call.rows, model), "");
  std::atomic<size_t> bytes = 0;
  expect_same(whole_report(call.rows, call.outputs(), model, twin(bytes), 2),
              judge_call(call.rows, call.outputs(), model));
  EXPECT_GT(bytes, size_t{300} * 128 * 2 * 2 * 2);
}

TEST(WholeReport, OfMerges) {
  HostMemory memory;
  const test::RandomMerge call(3, memory);
  std::atomic<size_t> bytes = 0;
  expect_same(whole_report(call.rows, call.outputs(), call.model, twin(bytes), 2),
              judge_call(call.rows, call.outputs(), call.model));
}

TEST(WholeReport, ARowThatIsInsideThereAloneIsAnError) {
  HostMemory memory;
  RandomCall call(of_requests(), 6, memory);
  const KernelModel model{.arithmetic = call.model.arithmetic};
  const TierReport right = judge_tiers_here(call.rows, call.outputs(), model);
  *static_cast<uint16_t *>(call.o_of(0, 0, 7)) ^= 0x8000;
  std::atomic<size_t> bytes = 0;
  Elsewhere blind = twin(bytes);
  blind.rows = [&](const AttentionRows &, const CallOutputs &, const KernelModel &) {
    return right;
  };
  EXPECT_THROW(whole_report(call.rows, call.outputs(), model, blind, 1), std::logic_error);
}

TEST(WholeReport, ARowThatIsSomethingElseThereAsOneIsAnError) {
  HostMemory memory;
  RandomCall call(of_requests(), 6, memory);
  const KernelModel model{.arithmetic = call.model.arithmetic};
  const TierReport right = judge_tiers_here(call.rows, call.outputs(), model);
  ASSERT_GT(right.rows[0].worst[4], 0.0); // the first pair is in the sample
  std::atomic<size_t> bytes = 0;
  const auto report_with = [&](double ratio) {
    Elsewhere there = twin(bytes);
    there.rows = [&](const AttentionRows &, const CallOutputs &, const KernelModel &) {
      TierReport report = right;
      report.rows[0].worst[4] = ratio;
      return report;
    };
    return whole_report(call.rows, call.outputs(), model, there, 1);
  };
  EXPECT_NO_THROW(report_with(right.rows[0].worst[4]));
  EXPECT_THROW(report_with(right.rows[0].worst[4] + 1e-5), std::logic_error);
  EXPECT_THROW(report_with(-1.0), std::logic_error); // it was not judged as one
}

} // namespace
} // namespace assay::oracle
