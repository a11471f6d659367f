// SPDX-License-Identifier: Apache-2.0
// The systems under test report what a kernel must not do to memory.
#include "properties/sut/sut.h"

#include <cstring>

#include <gtest/gtest.h>

#include "kernels/simt/asan.h"
#include "kernels/simt/stream.h"
#include "properties/case/codec.h"
#include "properties/relate/outcome.h"
#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

Problem two_rows() {
  Problem p = decode({}, fuzz_limits());
  p.batch = 2;
  p.seq_lens = {5, 3};
  p.page_size = 4;
  p.out_pad = 1;
  return p;
}

using RunFunction = assay_status (*)(const void *);
assay_kernel with_run(RunFunction run) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.run = run;
  return kernel;
}
const assay_paged_params &paged(const void *params) {
  return *static_cast<const assay_paged_params *>(params);
}

/// Both kinds of system under test must say the same.
CheckResult result_of(const assay_kernel &kernel, bool simt) {
  auto sut = simt ? make_simt_sut(kernel) : make_host_sut(kernel);
  return run_problem(two_rows(), *sut).check;
}
void expect_failure(RunFunction run, const std::string &part) {
  assay_kernel kernel = with_run(run);
  for (bool simt : {false, true}) {
    CheckResult c = result_of(kernel, simt);
    EXPECT_TRUE(c.failed()) << (simt ? "simt" : "host");
    EXPECT_NE(c.message.find(part), std::string::npos) << c.message;
  }
}

TEST(Sut, AGoodKernelHasNoViolations) {
  for (bool simt : {false, true})
    EXPECT_TRUE(result_of(reference::kernel("reference_v1"), simt).passed());
}

TEST(Sut, WritesToInputsAreViolations) {
  expect_failure(
      [](const void *params) -> assay_status {
        static_cast<char *>(const_cast<void *>(paged(params).q))[1] ^= 1;
        return ASSAY_OK;
      },
      "q: 1 bytes of an input written");
}

TEST(Sut, WritesToOutputPaddingAreViolations) {
  expect_failure(
      [](const void *params) -> assay_status {
        static_cast<char *>(paged(params).out)[2 * 64] ^= 1;
        return ASSAY_OK;
      },
      "out: 1 bytes outside the live output written");
}

#if !ASSAY_ASAN
TEST(Sut, WritesPastABufferAreViolations) {
  // Under AddressSanitizer the write itself is reported.
  assay_kernel kernel = with_run([](const void *params) -> assay_status {
    const auto &p = paged(params);
    static_cast<char *>(p.out)[2 * (p.out_stride_batch + p.head_dim)] ^= 1;
    return ASSAY_OK;
  });
  CheckResult host = result_of(kernel, false);
  EXPECT_TRUE(host.failed());
  EXPECT_NE(host.message.find("out: guard byte 0 past its end written"), std::string::npos)
      << host.message;
  CheckResult simt = result_of(kernel, true);
  EXPECT_TRUE(simt.failed());
  EXPECT_NE(simt.message.find("hazard"), std::string::npos) << simt.message;
}
#endif

TEST(Sut, ARefusalOfAValidCallIsAFailureAndUnsupportedIsNot) {
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.supports = [](const void *) -> assay_status { return ASSAY_INVALID_ARGUMENT; };
  kernel.last_error = [] { return "page_size must be even"; };
  EXPECT_EQ(result_of(kernel, true).message,
            "refused a valid call: invalid argument: page_size must be even");
  EXPECT_TRUE(result_of(kernel, true).failed());
  kernel.last_error = []() -> const char * { return nullptr; };
  for (bool simt : {true, false})
    EXPECT_EQ(result_of(kernel, simt).message, "refused a valid call: invalid argument: ");
  kernel.supports = [](const void *) -> assay_status { return ASSAY_UNSUPPORTED; };
  EXPECT_EQ(result_of(kernel, true).kind, CheckResult::Kind::kDiscard);
}

TEST(Sut, AnErrorStatusMustLeaveOutputsAlone) {
  expect_failure(
      [](const void *params) -> assay_status {
        static_cast<char *>(paged(params).out)[0] ^= 1;
        return ASSAY_LAUNCH_FAILED;
      },
      "out: 1 bytes of an input written");
}

TEST(Sut, DeadTableEntriesAreForbiddenToTheExecutor) {
  // Reading one is a hazard even when the value is not used: the executor's memory says so.
  assay_kernel kernel = with_run([](const void *params) -> assay_status {
    const auto &p = paged(params);
    auto &stream = *static_cast<simt::Stream *>(p.stream);
    simt::HazardKind kind;
    std::string text;
    const int32_t *dead = p.kv.page_table + p.kv.page_table_stride + 1; // row 1 has one page
    bool live_ok =
        stream.memory.access(p.kv.page_table, 4, simt::Direction::kRead, true, {}, kind, text);
    bool dead_ok = stream.memory.access(dead, 4, simt::Direction::kRead, true, {}, kind, text);
    return live_ok && !dead_ok ? ASSAY_UNSUPPORTED : ASSAY_INTERNAL;
  });
  EXPECT_EQ(result_of(kernel, true).kind, CheckResult::Kind::kDiscard);
}

TEST(Sut, CudaSaysWhyItCannotRun) {
  if (cuda_unavailable().empty()) GTEST_SKIP() << "a device is here";
  EXPECT_EQ(make_cuda_sut(reference::kernel("reference_v1")), nullptr);
}

} // namespace
} // namespace assay
