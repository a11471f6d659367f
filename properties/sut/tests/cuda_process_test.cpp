// SPDX-License-Identifier: Apache-2.0
// Kernels on a device, each in a process of its own: a fault there is a finding of its case and the
// next case meets a sound context.
#include <unistd.h>

#include <gtest/gtest.h>

#include "kernels/abi/kernel_table.h"
#include "properties/case/problem_gen.h"
#include "properties/relate/outcome.h"
#include "properties/sut/tests/fault.h"

namespace assay {
namespace {

Problem small_case() {
  Problem p = draw_problem(fuzz_limits(), Family::kPaged, 3);
  p.seq_lens.assign(static_cast<size_t>(p.batch), 5);
  return p;
}

/// The first time `corrupted`, then the kernel itself.
CheckResult first_and_next(assay_status (*corrupted)(const void *), CheckResult &next) {
  assay_kernel kernel = own_kernel("paged_attention_v1", ASSAY_TARGET_CUDA);
  static assay_status (*run)(const void *);
  const auto right = kernel.run;
  run = corrupted;
  kernel.run = [](const void *params) { return run(params); };
  const auto sut = make_process_sut(kernel);
  const CheckResult first = run_problem(small_case(), *sut).check;
  run = right; // what the next process is forked from
  next = run_problem(small_case(), *sut).check;
  return first;
}

TEST(CudaProcess, AFaultIsAFindingAndTheNextCaseRuns) {
  CheckResult next;
  const CheckResult first = first_and_next(
      [](const void *params) -> assay_status {
        launch_fault(static_cast<const assay_paged_params *>(params)->stream);
        return ASSAY_OK;
      },
      next);
  EXPECT_TRUE(first.failed());
  EXPECT_NE(first.message.find("cudaErrorIllegalAddress"), std::string::npos) << first.message;
  EXPECT_TRUE(next.passed()) << next.message;
}

TEST(CudaProcess, LeavingIsAFindingAndTheNextCaseRuns) {
  CheckResult next;
  const CheckResult first = first_and_next([](const void *) -> assay_status { _exit(0); }, next);
  EXPECT_TRUE(first.failed());
  EXPECT_NE(first.message.find("exit(0)"), std::string::npos) << first.message;
  EXPECT_TRUE(next.passed()) << next.message;
}

TEST(CudaProcess, TheOrderOfKeysIsAskedThere) {
  const assay_kernel &kernel = own_kernel("paged_attention_v2", ASSAY_TARGET_CUDA);
  const auto sut = make_process_sut(kernel);
  const Outcome run = run_problem(small_case(), *sut);
  ASSERT_TRUE(run.ok()) << run.check.message;
  EXPECT_FALSE(sut->key_order(run.before)->of(0).empty());
}

} // namespace
} // namespace assay
