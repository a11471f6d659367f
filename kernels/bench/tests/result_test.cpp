// SPDX-License-Identifier: Apache-2.0
// What a result says: the highest floor counts, decode keeps its fields.
#include "kernels/bench/result.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::bench {
namespace {

using Json = nlohmann::json;

Json json_of(const CellResult &result) {
  Json cells = Json::array();
  append_json(result, cells);
  return cells;
}

CellResult decode() {
  CellResult r;
  r.kind = CellKind::kDecode;
  r.cell = "llama8b b8 8k";
  r.kv_dtype = "e4m3";
  r.bytes = 134'000'000;
  r.plan_us = 3.5;
  r.floor = {30, 27};
  r.kernels = {{"paged_attention_v1", {50, 45, 4.5, 0.25}},
               {"paged_attention_v2", {40, 36, 5, 0.5}}};
  return r;
}

CellResult cascade() {
  CellResult r;
  r.kind = CellKind::kCascade;
  r.cell = "prefix b256 p8192";
  r.kv_dtype = "bf16";
  r.bytes = 33'554'432;
  r.flops = 79'000'000'000; // 100 us
  r.floor.us = 20;
  r.plan_lengths_us = 2.5;
  r.kernels = {{"cascade_attention", {150, 0, 6, 0.75}}};
  return r;
}

CellResult merge() {
  CellResult r;
  r.kind = CellKind::kMerge;
  r.cell = "merge_state 1024x2";
  r.kv_dtype = "bf16";
  r.bytes = 25'559'040;
  r.floor.us = 5;
  r.plain_us = 8;
  r.kernels = {{"merge_state", {10, 0, 3, 0.125}}};
  return r;
}

TEST(Result, TheHighestFloorCounts) {
  EXPECT_EQ(decode().floor_us(), 30);
  EXPECT_DOUBLE_EQ(cascade().floor_us(), 100);
  EXPECT_EQ(merge().floor_us(), 8);
  CellResult suffixes = cascade();
  suffixes.floor.us = 120;
  EXPECT_EQ(suffixes.floor_us(), 120);
}

TEST(Result, DecodeFields) {
  const Json cells = json_of(decode());
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[1], Json::parse(R"({"cell": "llama8b b8 8k", "kernel": "paged_attention_v2",
      "kv_dtype": "e4m3", "bytes": 134000000, "us": 40.0, "early_us": 36.0, "floor_us": 30.0,
      "floor_early_us": 27.0, "floor_fraction": 0.75, "early_fraction": 0.8333333333333334,
      "plan_us": 3.5, "host_us": 5.0, "checks_us": 0.5, "peers": {}})"));
}

TEST(Result, CascadeAndMergeFields) {
  const Json prefix = json_of(cascade())[0], pairs = json_of(merge())[0];
  EXPECT_EQ(prefix["kernel"], "cascade_attention");
  EXPECT_EQ(prefix["read_us"], 20);
  EXPECT_DOUBLE_EQ(prefix["flops_us"], 100);
  EXPECT_DOUBLE_EQ(prefix["floor_us"], 100);
  EXPECT_DOUBLE_EQ(prefix["times_floor"], 1.5);
  EXPECT_NEAR(prefix["tflops"], 526.7, 0.1);
  EXPECT_EQ(pairs["read_us"], 5);
  EXPECT_EQ(pairs["plain_us"], 8);
  EXPECT_EQ(pairs["floor_us"], 8);
  EXPECT_DOUBLE_EQ(pairs["times_floor"], 1.25);
  EXPECT_DOUBLE_EQ(pairs["floor_fraction"], 0.8);
  EXPECT_FALSE(pairs.contains("flops"));
  EXPECT_EQ(prefix["plan_us"], 0);
  EXPECT_EQ(prefix["plan_lengths_us"], 2.5);
}

// Nothing of the device was timed, so nothing is said of it.
TEST(Result, HostTimesAlone) {
  CellResult r = decode();
  r.kind = CellKind::kHost;
  const Json cells = json_of(r);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0], Json::parse(R"({"cell": "llama8b b8 8k", "kernel": "paged_attention_v1",
      "kv_dtype": "e4m3", "host_us": 4.5, "checks_us": 0.25})"));
  EXPECT_EQ(table_line(r),
            "llama8b b8 8k                paged_attention_v1   |     4.50    0.25\n"
            "llama8b b8 8k                paged_attention_v2   |     5.00    0.50\n");
}

TEST(Result, FindingsAreOfTheKernel) {
  CellResult r = decode();
  EXPECT_FALSE(json_of(r)[0].contains("findings"));
  r.verified["paged_attention_v1"] = {
      .rows = 12, .outputs = 4128, .device_ms = 1.5, .findings = {"request 0 head 1 dim 2: wrong"}};
  const Json cells = json_of(r);
  EXPECT_EQ(cells[0]["verified_rows"], 12);
  EXPECT_EQ(cells[0]["judged_outputs"], 4128);
  EXPECT_EQ(cells[0]["judge_ms"], 1.5);
  EXPECT_EQ(cells[0]["findings"].size(), 1u);
  EXPECT_FALSE(cells[1].contains("findings"));
}

TEST(Result, LinesStandBelowTheirHeads) {
  EXPECT_EQ(table_line(decode()),
            "llama8b b8 8k                   134.0 |     30.00    50.00    40.00 |     27.00    "
            "45.00    36.00 |   0.750   0.833 |    3.50 |     5.00    0.50\n");
  EXPECT_EQ(table_line(cascade()),
            "prefix b256 p8192                33.6     79.0 |     20.00    100.00 |    150.00     "
            "1.50    526.7 |                              |     6.00    0.75\n");
  CellResult fp8 = cascade();
  fp8.cell = "fp8 tree d3 f4";
  fp8.kernels = {{"tree_attention", {40, 0, 4, 0.25}}, {"paged_attention_v2", {60, 0}}};
  fp8.plan_us = 9;
  EXPECT_EQ(table_line(fp8),
            "fp8 tree d3 f4                   33.6     79.0 |     20.00    100.00 |           "
            "                  |     40.00     60.00     9.00 |     4.00    0.25\n");
  EXPECT_EQ(table_line(merge()),
            "merge_state 1024x2               25.6 |      5.00      8.00 |     "
            "10.00     1.25 |     2.56 |     3.00    0.12\n");
  for (const CellResult &r : {decode(), cascade(), merge()}) {
    std::string head = table_head(r.kind);
    head = head.substr(head.find('\n') + 1); // the names of the columns
    const std::string line = table_line(r);
    for (size_t i = 0; i < line.size(); ++i)
      EXPECT_EQ(line[i] == '|', i < head.size() && head[i] == '|') << head << line << i;
  }
  CellResult failed = merge();
  failed.error = "out of memory";
  EXPECT_EQ(table_line(failed), "merge_state 1024x2           failed: out of memory\n");
}

} // namespace
} // namespace assay::bench
