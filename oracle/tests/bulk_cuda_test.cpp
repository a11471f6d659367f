// SPDX-License-Identifier: Apache-2.0
// The GPU's enclosures and budgets against the host's, element by element, and mistakes of one
// element that only a whole judgement sees.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "oracle/bulk/bulk.h"
#include "oracle/judge/judge.h"
#include "oracle/tests/managed_memory.h"

namespace assay::oracle {
namespace {

using test::ManagedMemory;
using test::Options;
using test::random_options;
using test::RandomCall;

struct Compared {
  uint64_t elements = 0, claims_apart = 0, disjoint = 0;
  double least = INFINITY, most = 0.0; ///< budget of the device over the host's
  double least_radius = INFINITY;
};

void compare(const BulkElement &device, bool claim, const Enclosure &exact, double bound,
             Compared &out) {
  ++out.elements;
  const bool has = !std::isnan(device.bound);
  if (has != claim) {
    ++out.claims_apart;
    return;
  }
  if (!claim || !std::isfinite(bound) || !std::isfinite(device.bound)) return;
  if (!(std::fabs(device.mid - exact.mid) <= device.rad + exact.rad)) ++out.disjoint;
  if (exact.rad > 0.0) out.least_radius = std::min(out.least_radius, device.rad / exact.rad);
  out.least = std::min(out.least, device.bound / bound);
  out.most = std::max(out.most, device.bound / bound);
}

Compared compare(RandomCall &call, const std::vector<BulkElement> &elements) {
  Compared out;
  AttentionReader reader(call.rows, call.model);
  const auto dims = static_cast<size_t>(call.rows.out.dims);
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < call.rows.out.heads; ++head) {
      const RowReference exact = attention_row(reader.problem(row, head));
      if (exact.empty) continue;
      const BulkElement *device =
          &elements[static_cast<size_t>(row * call.rows.out.heads + head) * (dims + 1)];
      for (size_t i = 0; i < dims; ++i)
        compare(device[i], exact.claim && !exact.t0[i].overflow_possible, exact.o[i],
                exact.t0[i].total, out);
      compare(device[dims], exact.claim, exact.lse, exact.lse_budget, out);
    }
  return out;
}

class Bulk : public testing::Test {
protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    judge_ = std::make_unique<BulkJudge>();
  }
  std::unique_ptr<BulkJudge> judge_;
};

TEST_F(Bulk, SaysWhatTheHostSays) {
  std::mt19937 random(7);
  Compared all;
  for (int i = 0; i < 120; ++i) {
    const Options options = random_options(random);
    ManagedMemory memory;
    RandomCall call(options, random(), memory);
    ASSERT_EQ(bulk_refuses(call.rows, call.model), "");
    std::vector<BulkElement> elements;
    const BulkReport report =
        judge_->judge(call.rows, call.outputs(), call.model, nullptr, &elements);
    const Compared one = compare(call, elements);
    EXPECT_EQ(one.claims_apart, 0u) << "call " << i;
    EXPECT_EQ(one.disjoint, 0u) << "call " << i;
    EXPECT_LE(one.most, 1.001) << "call " << i;
    EXPECT_GE(one.least, 1.0 - 1e-6) << "call " << i;
    EXPECT_GE(one.least_radius, 1.0 - 1e-6) << "call " << i;
    const auto outputs = static_cast<uint64_t>(call.rows.out.rows()) *
                         static_cast<uint64_t>(call.rows.out.heads * (call.rows.out.dims + 1));
    EXPECT_EQ(report.elements, outputs);
    EXPECT_EQ(report.claimed + report.no_claim, outputs);
    all.elements += one.elements;
    all.least = std::min(all.least, one.least);
    all.most = std::max(all.most, one.most);
  }
  RecordProperty("elements", std::to_string(all.elements));
  std::printf("%llu elements, budgets %.9f to %.9f of the host's\n",
              static_cast<unsigned long long>(all.elements), all.least, all.most);
}

TEST_F(Bulk, NamesTheOneRowThatIsWrong) {
  Options options;
  options.lengths = {300, 700, 64, 129};
  ManagedMemory memory;
  RandomCall call(options, 3, memory);
  const auto open = [&] { return judge_->judge(call.rows, call.outputs(), call.model).open; };
  ASSERT_TRUE(open().empty());
  auto *o = static_cast<uint16_t *>(call.o_of(2, 5, 77));
  const uint16_t right = *o;
  for (const uint16_t wrong :
       {uint16_t(right + 4), uint16_t(right ^ 0x8000), uint16_t(0x7FC0), uint16_t(0x7F80)}) {
    *o = wrong;
    const std::vector<RowHead> rows = open();
    ASSERT_EQ(rows.size(), 1u) << wrong;
    EXPECT_EQ(rows[0].row, 2);
    EXPECT_EQ(rows[0].head, 5);
    EXPECT_EQ(judge_one(call.rows, call.outputs(), call.model, 2, 5).verdict, Verdict::kOutside);
  }
  *o = right;
  float *lse = call.lse_of(1, 3);
  *lse *= 1.442695f;
  ASSERT_EQ(open().size(), 1u);
  EXPECT_EQ(open()[0].head, 3);
}

} // namespace
} // namespace assay::oracle
