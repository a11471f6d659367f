// SPDX-License-Identifier: Apache-2.0
// One mistake at a time between a right kernel and its judge: on a GPU in calls of production size,
// here in small ones. Every row that is wrong is named, and no other. Prints a line a mistake, of
// which planted_h100.csv keeps those of a GPU.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "corpus/served/mistakes.h"
#include "corpus/served/planted_merge.h"

namespace assay::served {
namespace {

bool same(const oracle::RowHead &a, const oracle::RowHead &b) {
  return a.row == b.row && a.head == b.head;
}
bool has(const std::vector<oracle::RowHead> &all, const oracle::RowHead &one) {
  return std::any_of(all.begin(), all.end(), [&](const auto &at) { return same(at, one); });
}

/// All of `wrong`, and nothing else.
bool named(const std::vector<oracle::RowHead> &open, const std::vector<oracle::RowHead> &wrong) {
  return open.size() == wrong.size() &&
         std::all_of(wrong.begin(), wrong.end(), [&](const auto &at) { return has(open, at); });
}

std::string element_of(const oracle::Report &report) {
  if (report.verdict != oracle::Verdict::kOutside) return "none";
  const int dim = report.findings.front().dim;
  return dim < 0 ? "lse" : "dim " + std::to_string(dim);
}

/// The host puts the row outside, and where one element alone is wrong, no other.
bool is_element(const oracle::Report &report, int element) {
  return report.verdict == oracle::Verdict::kOutside &&
         (element == kAnyElement ||
          std::all_of(report.findings.begin(), report.findings.end(),
                      [&](const oracle::ElementReport &e) { return e.dim == element; }));
}

/// The mistakes that planted_h100.csv has for a call.
std::set<std::string> listed(const std::string &call) {
  std::set<std::string> out;
  std::ifstream file(ASSAY_SERVED);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(call + ",", 0) == 0) {
      const size_t begin = call.size() + 1;
      out.insert(line.substr(begin, line.find(',', begin) - begin));
    }
  return out;
}

class Served : public testing::Test {
protected:
  static void SetUpTestSuite() {
    std::printf("call,mistake,row,head,element,tier,by T0 and LSE,by every tier\n");
  }
  void SetUp() override {
#ifdef ASSAY_SERVED_ON_GPU
    machine_ = make_gpu();
#else
    machine_ = make_twin();
#endif
    if (machine_ == nullptr) GTEST_SKIP() << "no GPU";
  }
  bool is_large() const { return machine_->target() == ASSAY_TARGET_CUDA; }
  const char *twin() const { return is_large() ? "" : "twin of "; }

  /// Sizes that serving has, or the twin's: a request in the middle, its length not whole pages.
  Sizes sizes(const std::string &name, int requests, int keys, int small_keys) const {
    Sizes s;
    s.name = name;
    if (!is_large()) {
      requests = 3;
      keys = small_keys;
      s.heads = 8;
      s.kv_heads = 2;
      s.split = 64;
    }
    for (int r = 0; r < requests; ++r)
      s.lengths.push_back(keys - (r % 3 == 1 ? 5 + r : 0));
    s.request = requests * 7 / 12 / 3 * 3 + 1;
    s.head = s.heads - 3;
    return s;
  }

  void expect_each_found(const Sizes &sizes, const std::vector<std::vector<Mistake>> &lists) {
    ServedCall call(*machine_, sizes);
    ASSERT_TRUE(call.open_of_first().empty()) << "a right call";
    ASSERT_TRUE(call.open_of_every().empty()) << "a right call";
    std::set<std::string> planted;
    for (const auto &list : lists)
      for (const Mistake &mistake : list) {
        planted.insert(mistake.name);
        SCOPED_TRACE(sizes.name + ": " + mistake.name);
        const Wrong wrong = mistake.plant(call);
        expect_found(call, mistake.name, wrong);
        call.restore();
      }
    ASSERT_TRUE(call.open_of_every().empty()) << "restored";
    EXPECT_EQ(planted, listed(sizes.name));
  }

  void expect_found(ServedCall &call, const std::string &name, const Wrong &wrong) {
    std::vector<oracle::RowHead> rows = {{call.row(), call.head()}};
    rows.insert(rows.end(), wrong.others.begin(), wrong.others.end());
    const auto first = call.open_of_first(), every = call.open_of_every();
    for (const oracle::RowHead &at : first)
      EXPECT_TRUE(has(rows, at)) << "row " << at.row << " head " << at.head << " is right";
    EXPECT_TRUE(named(every, rows)) << every.size() << " rows are open";
    for (const oracle::RowHead &at : rows) {
      const oracle::Report report = call.on_host(at);
      EXPECT_TRUE(is_element(report, wrong.element))
          << report.finding_count << " findings, first " << element_of(report);
      const bool outside = report.verdict == oracle::Verdict::kOutside;
      std::printf("%s%s,%s,%d,%d,%s,T%d,%d,%d\n", twin(), call.sizes().name.c_str(), name.c_str(),
                  at.row, at.head, element_of(report).c_str(),
                  outside ? report.findings.front().tier : -1, has(first, at) ? 1 : 0,
                  has(every, at) ? 1 : 0);
    }
  }

  std::unique_ptr<Machine> machine_;
};

TEST_F(Served, Serving) {
  expect_each_found(sizes("64 x 8192", 64, 8192, 300),
                    {mistakes_of_outputs(), mistakes_of_keys(), mistakes_of_splits()});
}

TEST_F(Served, LongRows) {
  Sizes s = sizes("8 x 131072", 8, 131072, 1500);
  s.split = is_large() ? 4096 : 256;
  s.lost_pages = is_large() ? 1 << 17 : 256; // with 2^14 elements each: 2^31
  expect_each_found(
      s, {mistakes_of_offsets(), mistakes_of_outputs(), mistakes_of_keys(), mistakes_of_splits()});
}

TEST_F(Served, Fp8) {
  Sizes s = sizes("64 x 8192 e4m3", 64, 8192, 300);
  s.kv_dtype = ASSAY_E4M3;
  expect_each_found(s, {mistakes_of_fp8(), mistakes_of_keys()});
}

TEST_F(Served, Features) {
  Sizes s = sizes("64 x 8192 sinks window ALiBi", 64, 8192, 300);
  s.window = is_large() ? 2000 : 200;
  s.sinks = s.alibi = true;
  expect_each_found(s, {mistakes_of_features()});
}

TEST_F(Served, Tokens) {
  Sizes s = sizes("64 x 8192 x 4 tokens", 64, 8192, 300);
  s.q_len = 4;
  s.token = 1;
  expect_each_found(s, {mistakes_of_tokens()});
}

TEST_F(Served, Trees) {
  Sizes s = sizes("tree of 64 x 8192", 64, 8192, 400);
  s.kernel = "tree_attention";
  s.trunk = is_large() ? 4096 : 128;
  s.branch = is_large() ? 2048 : 128;
  s.fork = is_large() ? 16 : 1;
  expect_each_found(s, {mistakes_of_trees(), mistakes_of_outputs()});
}

TEST_F(Served, Merges) {
  PlantedMerge merge(*machine_, is_large() ? 4096 : 5, is_large() ? 32 : 4, 8);
  ASSERT_TRUE(merge.open().empty()) << "a right call";
  const std::string call = "merges 4096 x 32 x 8";
  std::set<std::string> planted;
  for (const MergeMistake &mistake : mistakes_of_merges()) {
    planted.insert(mistake.name);
    SCOPED_TRACE(mistake.name);
    mistake.plant(merge);
    const auto open = merge.open();
    EXPECT_TRUE(named(open, {{merge.row(), merge.head()}})) << open.size() << " rows are open";
    const oracle::Report report = merge.on_host();
    EXPECT_TRUE(is_element(report, mistake.element)) << element_of(report);
    std::printf("%s%s,%s,%d,%d,%s,T0,%d,%d\n", twin(), call.c_str(), mistake.name.c_str(),
                merge.row(), merge.head(), element_of(report).c_str(), open.empty() ? 0 : 1,
                open.empty() ? 0 : 1);
    merge.restore();
  }
  EXPECT_EQ(planted, listed(call));
}

} // namespace
} // namespace assay::served
