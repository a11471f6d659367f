// SPDX-License-Identifier: Apache-2.0
// A kernel's statement of its key order is judged like its numbers: one that is no order is a
// finding of the case, not the end of the run.
#include <unistd.h>

#include <stdexcept>

#include <gtest/gtest.h>

#include "properties/case/codec.h"
#include "properties/run/runner.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

using KeyOrder = decltype(assay_kernel::key_order);
constexpr int kKeys = 5;

assay_status one_tile(assay_key_tile *tiles, int32_t *count, int begin, int end) {
  tiles[0] = {};
  tiles[0].begin = begin;
  tiles[0].end = end;
  tiles[0].p_parts = 1;
  *count = 1;
  return ASSAY_OK;
}

CheckResult judged_in(Sut &sut) {
  Problem p = decode({}, fuzz_limits());
  p.seq_lens = {kKeys};
  bool threw = false;
  const CheckResult result = checked(*find_property("within_budget"), p, sut, &threw);
  EXPECT_FALSE(threw) << result.message;
  return result;
}

assay_kernel declaring(KeyOrder key_order) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.key_order = key_order;
  return kernel;
}

/// In this process and in one of its own: the verdict is the same.
CheckResult judged(KeyOrder key_order) {
  const assay_kernel kernel = declaring(key_order);
  const CheckResult result = judged_in(*make_simt_sut(kernel));
  EXPECT_EQ(judged_in(*make_process_sut(kernel)).message, result.message);
  return result;
}

/// Only in a process of its own.
void expect_apart(KeyOrder key_order, const std::string &part) {
  const assay_kernel kernel = declaring(key_order);
  const auto sut = make_process_sut(kernel);
  for (int i = 0; i < 2; ++i) { // the next case has a process again
    const CheckResult result = judged_in(*sut);
    EXPECT_TRUE(result.failed());
    EXPECT_NE(result.message.find("row 0 head 0: " + part), std::string::npos) << result.message;
  }
}

void expect_finding(KeyOrder key_order, const std::string &part) {
  const CheckResult result = judged(key_order);
  EXPECT_TRUE(result.failed());
  EXPECT_NE(result.message.find("row 0 head 0: " + part), std::string::npos) << result.message;
}

TEST(KeyOrder, AnHonestOnePasses) {
  EXPECT_TRUE(judged([](const void *, int32_t, int32_t, assay_key_tile *tiles, int32_t,
                        int32_t *count) -> assay_status {
                return one_tile(tiles, count, 0, kKeys);
              }).passed());
}

// A planner looks at the whole batch for each request that it is asked about.
TEST(KeyOrder, RequestsWithoutKeysAreNotAskedAbout) {
  const assay_kernel kernel =
      declaring([](const void *params, int32_t request, int32_t, assay_key_tile *tiles, int32_t,
                   int32_t *count) -> assay_status {
        const auto &p = *static_cast<const assay_paged_params *>(params);
        if (p.kv.seq_lens[request] == 0) _exit(7);
        return one_tile(tiles, count, 0, p.kv.seq_lens[request]);
      });
  Problem p = decode({}, fuzz_limits());
  p.batch = 3;
  p.seq_lens = {0, kKeys, 0};
  const auto sut = make_process_sut(kernel);
  const CheckResult result = checked(*find_property("within_budget"), p, *sut, nullptr);
  EXPECT_TRUE(result.passed()) << result.message;
}

TEST(KeyOrder, AMissingKeyIsAFinding) {
  expect_finding(
      [](const void *, int32_t, int32_t, assay_key_tile *tiles, int32_t,
         int32_t *count) -> assay_status { return one_tile(tiles, count, 0, kKeys - 1); },
      "key 4 of 5 is not visited");
}

TEST(KeyOrder, AKeyVisitedTwiceIsAFinding) {
  expect_finding(
      [](const void *, int32_t, int32_t, assay_key_tile *tiles, int32_t,
         int32_t *count) -> assay_status {
        one_tile(tiles, count, 0, kKeys);
        one_tile(tiles + 1, count, 3, 4);
        *count = 2;
        return ASSAY_OK;
      },
      "key 3 is visited twice");
}

TEST(KeyOrder, KeysThatTheRequestDoesNotHaveDoNotCount) {
  expect_finding([](const void *, int32_t, int32_t, assay_key_tile *tiles, int32_t,
                    int32_t *count) -> assay_status { return one_tile(tiles, count, -3, 2); },
                 "key 2 of 5 is not visited");
}

TEST(KeyOrder, ALevelThatTheCallDoesNotHaveIsAFinding) {
  expect_finding(
      [](const void *, int32_t, int32_t, assay_key_tile *tiles, int32_t,
         int32_t *count) -> assay_status {
        one_tile(tiles, count, 0, kKeys);
        tiles[0].level = 7;
        return ASSAY_OK;
      },
      "a tile of level 7");
}

TEST(KeyOrder, MoreSplitsThanDeclaredAreAFinding) {
  expect_finding(
      [](const void *, int32_t, int32_t, assay_key_tile *tiles, int32_t,
         int32_t *count) -> assay_status {
        one_tile(tiles, count, 0, 2);
        one_tile(tiles + 1, count, 2, kKeys);
        tiles[1].split = 1;
        *count = 2;
        return ASSAY_OK;
      },
      "2 splits");
}

TEST(KeyOrder, ARefusalIsAFinding) {
  expect_finding([](const void *, int32_t, int32_t, assay_key_tile *, int32_t,
                    int32_t *) -> assay_status { return ASSAY_INVALID_ARGUMENT; },
                 "the kernel declares one and does not give it");
  expect_finding(
      [](const void *, int32_t, int32_t, assay_key_tile *, int32_t,
         int32_t *count) -> assay_status {
        *count = -1;
        return ASSAY_OK;
      },
      "the kernel declares one and does not give it: it counts -1 tiles");
  expect_finding(
      [](const void *, int32_t, int32_t, assay_key_tile *, int32_t,
         int32_t *count) -> assay_status {
        *count = INT32_MAX;
        return ASSAY_OK;
      },
      "the kernel declares one and does not give it: it counts 2147483647 tiles");
}

TEST(KeyOrder, EndingTheProcessThatIsAskedIsAFinding) {
  expect_apart([](const void *, int32_t, int32_t, assay_key_tile *, int32_t,
                  int32_t *) -> assay_status { _exit(0); },
               "asked for it, the kernel ended its process with exit(0)");
  expect_apart([](const void *, int32_t, int32_t, assay_key_tile *, int32_t,
                  int32_t *) -> assay_status { throw std::runtime_error("no order today"); },
               "no order today");
}

} // namespace
} // namespace assay
