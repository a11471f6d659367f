// SPDX-License-Identifier: Apache-2.0
// The GPU's enclosures and budgets against the host's, element by element, and mistakes of one
// element that only a whole judgement sees.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "oracle/device/bulk.h"
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
             double least, Compared &out) {
  ++out.elements;
  const bool has = !std::isnan(device.bound);
  if (has != claim) {
    ++out.claims_apart;
    return;
  }
  if (!claim || !std::isfinite(bound) || !std::isfinite(device.bound)) return;
  if (!(std::fabs(device.mid - exact.mid) <= device.rad + exact.rad)) ++out.disjoint;
  if (exact.rad > 0.0) out.least_radius = std::min(out.least_radius, device.rad / exact.rad);
  out.least = std::min(out.least, device.bound / least);
  out.most = std::max(out.most, device.bound / bound);
}

/// Rows that the device leaves to the host are not held against anything.
Compared compare(RandomCall &call, const BulkReport &report,
                 const std::vector<BulkElement> &elements) {
  Compared out;
  AttentionReader reader(call.rows, call.model);
  const auto dims = static_cast<size_t>(call.rows.out.dims);
  const Format format = format_of(call.rows.out.dtype);
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < call.rows.out.heads; ++head) {
      if (std::any_of(report.open.begin(), report.open.end(),
                      [&](const RowHead &left) { return left.row == row && left.head == head; }))
        continue;
      const RowReference exact = attention_row(reader.problem(row, head));
      if (exact.empty) continue;
      const BulkElement *device =
          &elements[static_cast<size_t>(row * call.rows.out.heads + head) * (dims + 1)];
      for (size_t i = 0; i < dims; ++i)
        compare(device[i], exact.claim && !exact.t0[i].overflow_possible, exact.o[i],
                exact.t0[i].total, test::least_budget(format, exact.o[i], exact.t0[i]), out);
      compare(device[dims], exact.claim, exact.lse, exact.lse_budget, exact.lse_budget, out);
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

struct Campaign {
  Compared all;
  uint64_t rows = 0, one_pass = 0, open = 0;
};

/// The device's bounds of random calls against the host's.
Campaign compare_calls(BulkJudge &judge, int calls, unsigned seed,
                       Options (*draw)(std::mt19937 &)) {
  std::mt19937 random(seed);
  Campaign out;
  for (int i = 0; i < calls; ++i) {
    const Options options = draw(random);
    ManagedMemory memory;
    RandomCall call(options, random(), memory);
    EXPECT_EQ(bulk_refuses(call.rows, call.model), "");
    std::vector<BulkElement> elements;
    const BulkReport report =
        judge.judge(call.rows, call.outputs(), call.model, nullptr, &elements);
    const Compared one = compare(call, report, elements);
    EXPECT_EQ(one.claims_apart, 0u) << "call " << i;
    EXPECT_EQ(one.disjoint, 0u) << "call " << i;
    EXPECT_LE(one.most, 1.001) << "call " << i;
    EXPECT_GE(one.least, 1.0 - 1e-6) << "call " << i;
    EXPECT_GE(one.least_radius, 1.0 - 1e-6) << "call " << i;
    const auto outputs = static_cast<uint64_t>(call.rows.out.rows()) *
                         static_cast<uint64_t>(call.rows.out.heads * (call.rows.out.dims + 1));
    EXPECT_EQ(report.elements, outputs);
    EXPECT_EQ(report.claimed + report.no_claim, outputs);
    out.rows += outputs / static_cast<uint64_t>(call.rows.out.dims + 1);
    out.one_pass += report.one_pass;
    // Rows with nothing but a sink are the host's in any case.
    for (const RowHead &left : report.open)
      out.open += call.rows.keys(left.row) > 0;
    out.all.elements += one.elements;
    out.all.least = std::min(out.all.least, one.least);
    out.all.most = std::max(out.all.most, one.most);
  }
  std::printf("%llu elements, budgets %.9f to %.9f of the host's; %llu of %llu rows in one pass, "
              "%llu left to the host\n",
              static_cast<unsigned long long>(out.all.elements), out.all.least, out.all.most,
              static_cast<unsigned long long>(out.one_pass),
              static_cast<unsigned long long>(out.rows), static_cast<unsigned long long>(out.open));
  return out;
}

TEST_F(Bulk, SaysWhatTheHostSays) {
  const Campaign campaign = compare_calls(*judge_, 120, 7, random_options);
  RecordProperty("elements", std::to_string(campaign.all.elements));
  EXPECT_LT(50 * campaign.open, campaign.rows) << "rows left to the host";
}

/// Queries rounded to 11 or 7 bits: what a score is off by is then sum |k_i|. Of head_dims that
/// fill what a block of threads has room for, and of such that leave some of it.
Options rounded_query_options(std::mt19937 &random) {
  Options o = random_options(random);
  const int dims[] = {16, 40, 64, 96, 128, 200, 256};
  o.head_dim = dims[random() % std::size(dims)];
  o.q_error = random() % 2 ? 0x1p-12f : 0x1p-8f;
  return o;
}

TEST_F(Bulk, RoundedQueriesSayWhatTheHostSays) {
  const Campaign campaign = compare_calls(*judge_, 60, 13, rounded_query_options);
  EXPECT_GT(campaign.all.elements, 100000u);
  EXPECT_LT(2 * campaign.open, campaign.rows) << "rows left to the host";
}

/// What one pass takes: bf16 queries of 128 elements, keys of bf16 or e4m3, no map of logits.
Options one_pass_options(std::mt19937 &random) {
  Options o = random_options(random);
  o.dtype = ASSAY_BF16;
  o.kv_dtype = random() % 2 ? ASSAY_BF16 : ASSAY_E4M3;
  o.head_dim = 128;
  o.softcap = 0.0f;
  o.alibi = o.sinks = o.specials = false;
  o.scales = o.kv_dtype == ASSAY_E4M3 && random() % 2;
  return o;
}

TEST_F(Bulk, OnePassSaysWhatTheHostSays) {
  const Campaign campaign = compare_calls(*judge_, 120, 11, one_pass_options);
  // 4,678 of 10,795; the others have no keys, or are left.
  EXPECT_GT(5 * campaign.one_pass, 2 * campaign.rows) << "rows left to both passes";
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
