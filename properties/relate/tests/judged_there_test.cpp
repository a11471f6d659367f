// SPDX-License-Identifier: Apache-2.0
// Runs decided in the oracle's own process, by the text that a GPU runs: the verdict, the ratios
// and the findings are those of the host.
#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "properties/call/params.h"
#include "properties/case/problem_gen.h"
#include "properties/relate/judged_there.h"
#include "properties/sut/device_oracle.h"

namespace assay {
namespace {

oracle::CallOutputs outputs_of(const Tensors &t) {
  const auto *lse = t.lse.buffer < 0 ? nullptr : t.buffers[t.lse.buffer].bytes.data();
  return {token_0(t, t.o, t.buffers[t.o.buffer].bytes.data()),
          static_cast<const float *>(token_0(t, t.lse, lse))};
}

HostSample sample_of_one_in(int rows) {
  HostSample sample;
  sample.again = [rows](int row, int head, size_t) { return (row + head) % rows == 0; };
  sample.certified.row = [](int row, int head, size_t keys) {
    return row + head == 0 && keys < 200;
  };
  sample.certified.dims = [](int, int) { return std::vector<int>{0, 7}; };
  return sample;
}

struct Both {
  oracle::Report there, host;
};

/// Runs of drawn cases that the process takes, and the host's reports of them. `corrupt`: the last
/// bit but one of an output of each.
std::vector<Both> judged_twice(const assay_kernel &kernel, int cases, uint64_t first_seed,
                               bool corrupt) {
  std::vector<Both> out;
  const auto sut = make_simt_sut(kernel);
  sut->set_replays_scores(true);
  DeviceOracle process(DeviceOracle::Where::kTwin);
  for (uint64_t seed = first_seed; static_cast<int>(out.size()) < cases && seed < first_seed + 2000;
       ++seed) {
    Outcome run = run_problem(draw_problem(fuzz_limits(), sut->family(), seed), *sut);
    if (!run.ok()) continue;
    if (corrupt && run.after.rows() > 0) {
      const int row = run.after.rows() / 2, dim = run.after.problem.head_dim / 3;
      run.after.set_bits(run.after.o, row, 0, dim, run.after.bits(run.after.o, row, 0, dim) ^ 2);
    }
    OracleCall call = oracle_call(run.before, *sut);
    call.model.replay_scores = true;
    const oracle::CallOutputs outputs = outputs_of(run.after);
    const auto there = judged_there(run, call, outputs, sample_of_one_in(3), process);
    if (there) out.push_back({*there, oracle::judge_call(call.rows, outputs, call.model)});
  }
  return out;
}

/// Both without a number, or infinite, or near each other.
bool same_ratio(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
  return a == b || std::fabs(a - b) < 1e-6;
}

void expect_same(const oracle::Report &a, const oracle::Report &b) {
  EXPECT_EQ(a.verdict, b.verdict);
  EXPECT_EQ(a.elements, b.elements);
  EXPECT_EQ(a.claimed, b.claimed);
  EXPECT_EQ(a.no_claim, b.no_claim);
  EXPECT_EQ(a.declared_away, b.declared_away);
  EXPECT_EQ(a.finding_count, b.finding_count);
  EXPECT_PRED2(same_ratio, a.worst_ratio_t0, b.worst_ratio_t0);
  EXPECT_PRED2(same_ratio, a.worst_ratio_t1, b.worst_ratio_t1);
  EXPECT_PRED2(same_ratio, a.worst_ratio_t2, b.worst_ratio_t2);
  EXPECT_PRED2(same_ratio, a.worst_ratio_lse, b.worst_ratio_lse);
  EXPECT_PRED2(same_ratio, a.worst.ratio, b.worst.ratio);
  EXPECT_EQ(a.budgets.median(), b.budgets.median());
  ASSERT_EQ(a.findings.size(), b.findings.size());
  for (size_t i = 0; i < a.findings.size(); ++i) {
    EXPECT_EQ(a.findings[i].request, b.findings[i].request);
    EXPECT_EQ(a.findings[i].head, b.findings[i].head);
    EXPECT_EQ(a.findings[i].dim, b.findings[i].dim);
    EXPECT_EQ(a.findings[i].reason, b.findings[i].reason);
  }
}

class JudgedThere : public testing::TestWithParam<const assay_kernel *> {};

TEST_P(JudgedThere, AsByTheHost) {
  uint64_t certified = 0, replayed = 0, scores_replayed = 0;
  for (const Both &both : judged_twice(*GetParam(), 12, 5000, false)) {
    expect_same(both.there, both.host);
    EXPECT_EQ(both.host.finding_count, 0u);
    certified += both.there.certified_rows;
    replayed += std::isnan(both.there.worst_ratio_t1) ? 0 : 1;
    scores_replayed += std::isnan(both.there.worst_ratio_t2) ? 0 : 1;
  }
  EXPECT_GT(certified, 0u);
  EXPECT_GT(replayed, 0u);
  EXPECT_GT(scores_replayed, 0u);
}

TEST_P(JudgedThere, FindsWhatTheHostFinds) {
  uint64_t findings = 0;
  for (const Both &both : judged_twice(*GetParam(), 8, 6000, true)) {
    expect_same(both.there, both.host);
    findings += both.host.finding_count;
  }
  EXPECT_GT(findings, 0u);
}

std::vector<const assay_kernel *> attention_kernels() {
  std::vector<const assay_kernel *> list;
  for (const assay_kernel &kernel : linked_kernels())
    if (kernel.target == ASSAY_TARGET_SIMT && kernel.key_order != nullptr) list.push_back(&kernel);
  return list;
}
INSTANTIATE_TEST_SUITE_P(, JudgedThere, testing::ValuesIn(attention_kernels()),
                         [](const auto &info) { return std::string(info.param->name); });

/// A GPU whose text is wrong: what the sample of rows shows of it.
TEST(JudgedThereApart, AnyRatioOfTheSampleThatDiffersIsNoticed) {
  oracle::TierRow device;
  device.inside = 1;
  device.worst[0] = 0.5;
  device.worst[1] = 0.4;
  device.worst[3] = 0.25;
  device.worst[4] = 0.3;
  oracle::Report host;
  host.worst_ratio_t0 = 0.5;
  host.worst_ratio_t1 = 0.4;
  host.worst_ratio_lse = 0.25;
  host.worst_ratio_row = 0.3;
  EXPECT_EQ(apart(device, host), "");
  host.worst_ratio_t1 = 0.41;
  EXPECT_NE(apart(device, host).find("T1"), std::string::npos);
  host.worst_ratio_t1 = 0.4;
  host.worst_ratio_t2 = 0.1; // a tier that the GPU has not judged
  EXPECT_NE(apart(device, host).find("T2"), std::string::npos);
  host.worst_ratio_t2 = NAN;
  host.verdict = oracle::Verdict::kOutside;
  EXPECT_NE(apart(device, host).find("GPU alone"), std::string::npos);
  host.worst.dim = oracle::ElementReport::kRow;
  host.worst_ratio_row = 1.1;
  EXPECT_NE(apart(device, host).find("as one"), std::string::npos);
  device.worst[4] = -1.0; // the GPU has not looked at the row as one
  host.verdict = oracle::Verdict::kInside;
  host.worst_ratio_row = 0.3;
  EXPECT_NE(apart(device, host).find("as one"), std::string::npos);
  host.worst_ratio_row = NAN; // an error of 0 here
  for (const double last_bit_of_a_sum : {-1.0, 0.0, 1e-12}) {
    device.worst[4] = last_bit_of_a_sum;
    EXPECT_EQ(apart(device, host), "");
  }
  device.worst[4] = 0.3;
  EXPECT_NE(apart(device, host).find("as one"), std::string::npos);
  host.verdict = oracle::Verdict::kOutside;
  host.worst_ratio_row = 1.1;
  device.near = 1; // the host looks in more directions
  EXPECT_EQ(apart(device, host), "");
  host.verdict = oracle::Verdict::kInside;
  host.no_claim = 1;
  EXPECT_NE(apart(device, host), "");
}

} // namespace
} // namespace assay
