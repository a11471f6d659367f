// SPDX-License-Identifier: Apache-2.0
// A kernel's statement of its key order is judged like its numbers: one that is no order is a
// finding of the case, not the end of the run.
#include <unistd.h>

#include <stdexcept>

#include <gtest/gtest.h>

#include "properties/call/materialise.h"
#include "properties/case/codec.h"
#include "properties/run/runner.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

using KeyOrder = decltype(assay_kernel::key_order);
constexpr int kKeys = 5;

assay_key_tile tile(int begin, int end, int split = 0, int level = 0) {
  return {level, split, 0, begin, end, 1};
}

/// Says that the one request has these.
assay_status say(std::initializer_list<assay_key_tile> said, assay_key_tile *tiles,
                 int64_t *first) {
  std::copy(said.begin(), said.end(), tiles);
  first[0] = 0;
  first[1] = static_cast<int64_t>(said.size());
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
    EXPECT_NE(result.message.find("" + part), std::string::npos) << result.message;
  }
}

void expect_finding(KeyOrder key_order, const std::string &part) {
  const CheckResult result = judged(key_order);
  EXPECT_TRUE(result.failed());
  EXPECT_NE(result.message.find("" + part), std::string::npos) << result.message;
}

TEST(KeyOrder, AnHonestOnePasses) {
  EXPECT_TRUE(judged([](const void *, assay_key_tile *tiles, int64_t, int64_t *first) {
                return say({tile(0, kKeys)}, tiles, first);
              }).passed());
}

TEST(KeyOrder, AMissingKeyIsAFinding) {
  expect_finding([](const void *, assay_key_tile *tiles, int64_t,
                    int64_t *first) { return say({tile(0, kKeys - 1)}, tiles, first); },
                 "row 0: key 4 of 5 is not visited");
}

TEST(KeyOrder, AKeyVisitedTwiceIsAFinding) {
  expect_finding(
      [](const void *, assay_key_tile *tiles, int64_t, int64_t *first) {
        return say({tile(0, kKeys), tile(3, 4)}, tiles, first);
      },
      "row 0: key 3 is visited twice");
}

TEST(KeyOrder, KeysThatTheRequestDoesNotHaveDoNotCount) {
  expect_finding([](const void *, assay_key_tile *tiles, int64_t,
                    int64_t *first) { return say({tile(-3, 2)}, tiles, first); },
                 "row 0: key 2 of 5 is not visited");
}

TEST(KeyOrder, ALevelThatTheCallDoesNotHaveIsAFinding) {
  expect_finding([](const void *, assay_key_tile *tiles, int64_t,
                    int64_t *first) { return say({tile(0, kKeys, 0, 7)}, tiles, first); },
                 "row 0: a tile of level 7");
}

TEST(KeyOrder, MoreSplitsThanDeclaredAreAFinding) {
  expect_finding(
      [](const void *, assay_key_tile *tiles, int64_t, int64_t *first) {
        return say({tile(0, 2), tile(2, kKeys, 1)}, tiles, first);
      },
      "row 0: 2 splits");
}

TEST(KeyOrder, ARefusalIsAFinding) {
  expect_finding([](const void *, assay_key_tile *, int64_t,
                    int64_t *) -> assay_status { return ASSAY_INVALID_ARGUMENT; },
                 "declared key order: the kernel does not give it");
  expect_finding(
      [](const void *, assay_key_tile *, int64_t, int64_t *first) -> assay_status {
        first[1] = -1;
        return ASSAY_OK;
      },
      "the kernel does not give it: it counts -1 tiles of request 0");
  expect_finding(
      [](const void *, assay_key_tile *, int64_t, int64_t *first) -> assay_status {
        first[1] = INT64_MAX;
        return ASSAY_OK;
      },
      "the kernel does not give it: it counts 9223372036854775807 tiles");
}

TEST(KeyOrder, EndingTheProcessThatIsAskedIsAFinding) {
  expect_apart([](const void *, assay_key_tile *, int64_t, int64_t *) -> assay_status { _exit(0); },
               "declared key order: asked for it, the kernel ended its process with exit(0)");
  expect_apart([](const void *, assay_key_tile *, int64_t,
                  int64_t *) -> assay_status { throw std::runtime_error("no order today"); },
               "no order today");
}

// A question costs a plan of the whole batch, and in a process a copy of the call's memory.
TEST(KeyOrder, IsAskedOnceOfACall) {
  static int asked;
  asked = 0;
  const assay_kernel kernel =
      declaring([](const void *, assay_key_tile *tiles, int64_t, int64_t *first) {
        ++asked;
        return say({tile(0, kKeys)}, tiles, first);
      });
  const auto sut = make_simt_sut(kernel);
  Problem p = decode({}, fuzz_limits());
  p.seq_lens = {kKeys};
  const Tensors call = materialise(p);
  EXPECT_EQ(sut->key_order(call), sut->key_order(call));
  EXPECT_EQ(asked, 1);
  p.q.seed += 1;
  EXPECT_NE(sut->key_order(materialise(p)), nullptr);
  EXPECT_EQ(asked, 2);
}

} // namespace
} // namespace assay
