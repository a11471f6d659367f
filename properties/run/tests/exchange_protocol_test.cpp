// SPDX-License-Identifier: Apache-2.0
// What orders the ranks of an exchange: each store, load, scope, epoch and sign of life of it
// removed or weakened, one at a time. All are reported on the first schedule, and the kernel as it
// is on none.
#include <gtest/gtest.h>

#include "properties/case/directed.h"
#include "properties/run/tests/mutant_cases.h"

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

/// Whether a mutant needs so few heads that one rank merges nothing.
bool is_of_signs(const std::string &mutant) { return mutant.rfind("exchange_sign", 0) == 0; }

CheckResult run_case(const std::string &mutant, BlockOrder order, bool few_heads) {
  const mutants::Activate active(mutant.empty() ? 0 : mutants::find(mutant)->id);
  Problem p = exchange_case();
  if (few_heads) p.num_kv_heads = 2;
  p.schedule.order = order;
  const auto sut = mutant_sut(*mutants::find_kernel("exchange_scatter"), false);
  return checked(*find_property("within_budget"), p, *sut, nullptr);
}

class ExchangeProtocol : public testing::TestWithParam<const char *> {};

TEST_P(ExchangeProtocol, weakened_is_reported_on_the_first_schedule) {
  const CheckResult result = run_case(GetParam(), BlockOrder::kAscending, is_of_signs(GetParam()));
  EXPECT_TRUE(result.failed());
  std::printf("%s\n", result.message.substr(0, 200).c_str());
}

INSTANTIATE_TEST_SUITE_P(
    all, ExchangeProtocol,
    testing::Values("exchange_packet_plain", "exchange_packet_of_the_device",
                    "exchange_packet_of_the_block", "exchange_packet_in_halves",
                    "exchange_packet_lost", "exchange_packet_of_worker_0",
                    "exchange_packets_of_senders_swapped", "exchange_wait_lost",
                    "exchange_wait_for_the_first_packet", "exchange_wait_of_the_device",
                    "exchange_wait_reads_plainly", "exchange_waits_for_last_epoch",
                    "exchange_waits_for_one_peer", "exchange_epoch_kept",
                    "exchange_epoch_of_every_other_worker", "exchange_one_half",
                    "exchange_half_by_worker", "exchange_sign_not_sent",
                    "exchange_sign_not_awaited", "exchange_sign_of_one_peer"),
    [](const auto &info) { return std::string(info.param); });

TEST(ExchangeProtocol, the_kernel_as_it_is_passes) {
  for (const BlockOrder order :
       {BlockOrder::kAscending, BlockOrder::kDescending, BlockOrder::kSeeded})
    for (const bool few_heads : {false, true}) {
      const CheckResult result = run_case("", order, few_heads);
      EXPECT_TRUE(result.passed()) << result.message;
    }
}

} // namespace
} // namespace assay
