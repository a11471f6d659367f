// SPDX-License-Identifier: Apache-2.0
// Every kernel of corpus/calls is found by the draws of `assay check` at three seeds.
#include "corpus/calls/kernels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/run/draw.h"
#include "properties/run/requirements.h"
#include "properties/run/runner.h"

namespace assay {
namespace {

/// Where the draws of a seed show a kernel first.
struct Shown {
  std::string property;
  uint64_t draw = 0;
};

/// By name and seed.
const std::map<std::pair<std::string, uint64_t>, Shown> &recorded() {
  static const auto rows = [] {
    std::map<std::pair<std::string, uint64_t>, Shown> out;
    std::ifstream file(ASSAY_WRONG_CALLS);
    std::string line, name, seed, property, draw;
    std::getline(file, line); // the heads
    while (std::getline(file, line)) {
      std::istringstream cells(line);
      std::getline(cells, name, ',');
      std::getline(cells, seed, ',');
      std::getline(cells, property, ',');
      std::getline(cells, draw, ',');
      out[{name, std::stoull(seed)}] = {property, std::stoull(draw)};
    }
    return out;
  }();
  return rows;
}

RunnerOptions options_of(uint64_t seed) {
  RunnerOptions options;
  options.seed = seed;
  options.threads = 1;
  // What a kernel remembers must end with it.
  options.isolate = !processes_need_one_thread();
  options.shrink = {.checks = 0, .seconds = 0};
  return options;
}

bool shows(const Shown &shown, const assay_kernel &kernel, const RunnerOptions &options) {
  const Property *property = find_property(shown.property);
  if (property == nullptr) return false;
  const auto sut = make_process_sut(kernel);
  return checked(*property, draw_case(*property, kernel, options, shown.draw), *sut, nullptr)
      .failed();
}

/// What the draws of the seed show first.
std::optional<Shown> first_shown(const assay_kernel &kernel, RunnerOptions options,
                                 const std::vector<const Property *> &properties) {
  std::atomic<bool> failed = false;
  options.found = [&](const PropertyRun &) { failed = true; };
  options.stop = &failed;
  const RunSummary summary = run_properties({&kernel}, properties, options, nullptr);
  for (const PropertyRun &run : summary.runs)
    if (!run.first.empty()) return Shown{run.property->name, run.first[0].index};
  return std::nullopt;
}

/// Searches all draws of the seed, and prints the row to record: a draw that shows the mistake in a
/// process without earlier calls.
bool searched(const assay_kernel &kernel, const RunnerOptions &options) {
  std::vector<const Property *> all;
  for (const Property &property : properties())
    all.push_back(&property);
  std::optional<Shown> shown = first_shown(kernel, options, all);
  if (shown && !shows(*shown, kernel, options))
    shown = first_shown(kernel, options, {find_property("call_sequence")});
  if (shown)
    std::printf("row %s,%llu,%s,%llu\n", kernel.name, static_cast<unsigned long long>(options.seed),
                shown->property.c_str(), static_cast<unsigned long long>(shown->draw));
  return shown.has_value();
}

class WrongCalls : public testing::TestWithParam<const char *> {};

TEST_P(WrongCalls, are_found_at_three_seeds) {
  const assay_kernel *kernel = wrong_calls::find_kernel(GetParam());
  ASSERT_NE(kernel, nullptr);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const RunnerOptions options = options_of(seed);
    const auto row = recorded().find({kernel->name, seed});
    if (row != recorded().end() && shows(row->second, *kernel, options)) continue;
    EXPECT_TRUE(searched(*kernel, options))
        << kernel->name << " survives seed " << seed << ": " << wrong_calls::mistake(kernel->name);
  }
}

// Its draws alone; where they show none, those of within_budget do (calls.csv).
TEST(DeclaredOrder, shows_wrong_orders_alone) {
  int orders = 0, shown = 0;
  for (int i = 0; i < wrong_calls::plugin().num_kernels; ++i) {
    const assay_kernel &kernel = wrong_calls::plugin().kernels[i];
    if (std::string_view(kernel.name).rfind("order_of_", 0) != 0) continue;
    ++orders;
    for (uint64_t seed = 1; seed <= 3; ++seed)
      shown += first_shown(kernel, options_of(seed), {find_property("declared_order")}).has_value();
  }
  EXPECT_EQ(orders, 8);
  EXPECT_GE(shown, 23) << "of 24";
}

std::vector<const char *> names() {
  std::vector<const char *> out;
  for (int i = 0; i < wrong_calls::plugin().num_kernels; ++i)
    out.push_back(wrong_calls::plugin().kernels[i].name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(all, WrongCalls, testing::ValuesIn(names()),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace assay
