// SPDX-License-Identifier: Apache-2.0
// What a reader gets from a failure of a real kernel: the first case that an ordinary draw finds
// shrinks to one request, one head and at most 16 keys and one, and its text gives the
// same verdict word for word, every time.
#include <algorithm>
#include <chrono>
#include <numeric>

#include <gtest/gtest.h>

#include "properties/case/case_text.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"
#include "properties/run/tests/mutant_cases.h"

namespace assay {
namespace {

struct Bar {
  const char *mutant, *kernel;
  const char *property = nullptr; ///< null: whatever fails first
  int kv_heads = 1, group = 1;
  int keys = 17; ///< keys of the request with the most
  const char *reason = "";
  uint64_t draw = 0; ///< the first draw of `property` that fails
};

constexpr const char *kSecondTile =
    "needs a second tile of one state: 4 warps of 32 keys each come first";

constexpr Bar kBars[] = {
    {"last_key_dropped", "paged_attention_v1"},
    {"block_merge_unweighted", "paged_attention_v1", nullptr, 1, 1, 33, "needs two warps"},
    {"page_entry_repeated", "paged_attention_v1"},
    {"k_wait_one_late", "paged_attention_v1"},
    {"exp2_coarse", "paged_attention_v2"},
    {"row_sum_lane_lost", "paged_attention_v2"},
    {"output_truncated", "paged_attention_v2"},
    {"scale_in_bf16", "paged_attention_v2"},
    {"merge_normaliser_off", "paged_attention_v2"},
    {"split_average", "paged_attention_v2", "within_budget"},
    {"dead_slot_copied", "cascade_attention"},
    {"split_merge_ln_log2", "cascade_attention", "cascade_equals_flat"},
    {"merge_normaliser_off", "cascade_attention"},
    {"row_sum_skips_small", "cascade_attention", "within_budget"},
    {"merge_ln_log2_mix", "merge_state"},
    {"merge_states_drops_last", "merge_states"},
    // Those that no case this small shows.
    {"o_not_rescaled", "paged_attention_v2", "within_budget", 1, 1, 129, kSecondTile, 29},
    {"d_not_rescaled", "paged_attention_v1", nullptr, 1, 1, 129, kSecondTile},
    {"o_small_rescale_skipped", "paged_attention_v2", "within_budget", 1, 1, 129, kSecondTile, 29},
    {"interior_key_dropped", "paged_attention_v2", nullptr, 1, 1, 32, "concerns key 31"},
    {"tile_skipped", "paged_attention_v1", nullptr, 1, 1, 64, "concerns keys 32 to 63, if all"},
    {"gqa_head_modulo", "paged_attention_v1", nullptr, 2, 2, 17, "equals division for one head"},
    {"partial_slot_of_row_zero", "paged_attention_v2", nullptr, 1, 2, 17, "needs two rows"},
};

// The number of checks is the bar; the time limit only ends a hang.
const ShrinkBudget kBudget = {.checks = 1500, .seconds = 600};

int most_keys(const Problem &p) {
  if (is_merge(p)) return 0;
  std::vector<int> keys = keys_per_request(p);
  return keys.empty() ? 0 : *std::max_element(keys.begin(), keys.end());
}

class MutantShrink : public testing::TestWithParam<Bar> {};

TEST_P(MutantShrink, reaches_the_bar_and_repeats) {
  const Bar &bar = GetParam();
  const mutants::Mutant *mutant = mutants::find(bar.mutant);
  const assay_kernel *kernel = mutants::find_kernel(bar.kernel);
  ASSERT_TRUE(mutant != nullptr && kernel != nullptr && concerns(*mutant, kernel->name));
  const mutants::Activate active(mutant->id);
  const std::unique_ptr<Sut> sut = mutant_sut(*kernel, false);
  const Property *property = bar.property ? find_property(bar.property) : nullptr;
  DrawnFailure drawn;
  if (bar.draw != 0) drawn = failure_at(*property, *kernel, *sut, bar.draw, {});
  if (drawn.property == nullptr) drawn = first_failure(*kernel, *sut, 200, {}, property);
  ASSERT_NE(drawn.property, nullptr);
  ShrinkStats stats;
  const auto start = std::chrono::steady_clock::now();
  const auto fails = [&](const Problem &c) {
    return checked(*drawn.property, c, *sut, nullptr).failed();
  };
  const Problem small = shrink(drawn.problem, fails, kBudget, &stats);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  printf("  %-26s %-20s %-24s draw %llu, keys %3d -> %2d, %4d checks, %.2f s\n", bar.mutant,
         bar.kernel, drawn.property->name, static_cast<unsigned long long>(drawn.index),
         most_keys(drawn.problem), most_keys(small), stats.checks, seconds.count());
  EXPECT_FALSE(stats.exhausted);
  EXPECT_EQ(small.batch, 1);
  EXPECT_EQ(small.num_kv_heads, bar.kv_heads);
  EXPECT_EQ(small.group_size, bar.group);
  EXPECT_LE(most_keys(small), bar.keys) << bar.reason;
  if (is_merge(small)) {
    EXPECT_LE(small.num_states, 3);
  }

  // The line of the report: the case as text, read back, on a fresh executor.
  Case c;
  c.kernel = bar.kernel;
  c.property = drawn.property->name;
  c.problem = small;
  const std::string text = format_case(c);
  const CheckResult first = checked(*drawn.property, small, *sut, nullptr);
  for (int i = 0; i < 100; ++i) {
    const auto parsed = parse_case(text);
    ASSERT_TRUE(std::holds_alternative<Case>(parsed));
    const std::unique_ptr<Sut> fresh = make_simt_sut(*kernel);
    fresh->set_replays_scores(true);
    const CheckResult again =
        checked(*drawn.property, std::get<Case>(parsed).problem, *fresh, nullptr);
    ASSERT_TRUE(again.failed()) << "replay " << i;
    ASSERT_EQ(again.message, first.message) << "replay " << i;
    ASSERT_EQ(again.detail, first.detail) << "replay " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(all, MutantShrink, testing::ValuesIn(kBars), [](const auto &info) {
  return std::string(info.param.mutant) + "_" + info.param.kernel;
});

// The exceptions are what the mutants need, not what the shrinker misses: no case at the plain bar
// shows them, in 300 draws cut down to it.
TEST(MutantShrinkBar, exceptions_are_inherent) {
  for (const Bar &bar : kBars) {
    if (bar.kv_heads == 1 && bar.group == 1 && bar.keys == 17) continue;
    EXPECT_STRNE(bar.reason, "");
    const assay_kernel *kernel = mutants::find_kernel(bar.kernel);
    const Property *property = find_property("within_budget");
    const mutants::Activate active(mutants::find(bar.mutant)->id);
    const std::unique_ptr<Sut> sut = make_simt_sut(*kernel);
    sut->set_replays_scores(true);
    for (int i = 0; i < 300; ++i) {
      // More query tokens are more rows, as more heads are.
      Problem p = without_features(draw_mutant_case(*property, *kernel, i));
      p.batch = p.num_kv_heads = p.group_size = 1;
      p.sharing = Sharing::kNone;
      p.placement = Placement::kIdentity;
      p.page_ids.clear();
      p.seq_lens = {1 + i % 17};
      ASSERT_FALSE(checked(*property, p, *sut, nullptr).failed()) << bar.mutant << "\n"
                                                                  << format_problem(p);
    }
  }
}

} // namespace
} // namespace assay
