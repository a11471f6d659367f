// SPDX-License-Identifier: Apache-2.0
// What orders the ranks of an exchange: each release, acquire, scope, barrier, flag and epoch of it
// removed or weakened, one at a time. All are reported on the first schedule, and the kernel as it
// is on none.
#include <gtest/gtest.h>

#include "properties/case/directed.h"
#include "properties/tests/mutant_cases.h"

namespace assay {
namespace {

/// Three ranks, of which each merges some of the heads; rows for more than one worker.
Problem exchange_case() {
  Problem p = decode_family({}, fuzz_limits(), Family::kMergeStates);
  p.batch = 5;
  p.num_states = 3;
  p.num_kv_heads = 4;
  p.head_dim = 64;
  p.dtype = Dtype::kBf16;
  p.has_lse = true;
  return p;
}

CheckResult run_case(const std::string &mutant, BlockOrder order) {
  const mutants::Activate active(mutant.empty() ? 0 : find_mutant(mutant)->id);
  Problem p = exchange_case();
  p.schedule.order = order;
  const auto sut = mutant_sut(*mutant_kernel("exchange_scatter"), false);
  return checked(*find_property("within_budget"), p, *sut, nullptr);
}

class ExchangeProtocol : public testing::TestWithParam<const char *> {};

TEST_P(ExchangeProtocol, weakened_is_reported_on_the_first_schedule) {
  const CheckResult result = run_case(GetParam(), BlockOrder::kAscending);
  EXPECT_TRUE(result.failed());
  EXPECT_EQ(result.message.rfind("hazard: ", 0), 0u) << result.message;
  std::printf("%s\n", result.message.substr(0, 200).c_str());
}

INSTANTIATE_TEST_SUITE_P(
    all, ExchangeProtocol,
    testing::Values("exchange_flag_relaxed", "exchange_flag_of_the_device",
                    "exchange_flag_of_the_block", "exchange_flag_plain", "exchange_flag_lost",
                    "exchange_flag_of_worker_0", "exchange_flags_of_senders_swapped",
                    "exchange_wait_relaxed", "exchange_wait_of_the_device", "exchange_wait_lost",
                    "exchange_waits_for_one_peer", "exchange_waits_for_last_epoch",
                    "exchange_sends_behind_the_flag", "exchange_reads_before_the_wait",
                    "exchange_epoch_kept", "exchange_epoch_of_every_other_worker",
                    "exchange_one_half", "exchange_half_by_worker"),
    [](const auto &info) { return std::string(info.param); });

TEST(ExchangeProtocol, the_kernel_as_it_is_passes) {
  for (const BlockOrder order :
       {BlockOrder::kAscending, BlockOrder::kDescending, BlockOrder::kSeeded}) {
    const CheckResult result = run_case("", order);
    EXPECT_TRUE(result.passed()) << result.message;
  }
}

} // namespace
} // namespace assay
