// SPDX-License-Identifier: Apache-2.0
// Wrong kernels that some schedule alone shows: what the usual schedules find, and what the
// explorer finds. Right kernels are explored completely, without a report.
#include <algorithm>
#include <set>
#include <vector>

#include "kernels/simt/explorer.h"
#include "kernels/simt/tests/explored_kernels.h"

namespace assay::simt {
namespace {

using explored::Kernel;
using explored::kKernels;
using explored::kResult;
using explored::kWords;

// One memory for all runs of a kernel.
class Runs {
public:
  Runs() { stream.memory.adopt(words, sizeof words, Access::kReadWrite, "words"); }
  // Runs once, from the same memory each time. Returns what is wrong with the run.
  std::string run(const LaunchConfig &config, const std::function<void(uint32_t *)> &body) {
    std::memset(words, 0, sizeof words);
    stream.hazards.clear();
    launch(&stream, config, [&] { body(words); });
    if (!stream.hazards.empty()) return stream.hazards.back().message;
    const std::vector<uint32_t> result(words + kResult, words + kWords);
    if (first_.empty()) first_ = result;
    return result == first_ ? "" : "another result";
  }

  Stream stream;

private:
  alignas(16) uint32_t words[kWords] = {};
  std::vector<uint32_t> first_;
};

LaunchConfig config_of(const Kernel &kernel) {
  return block_of(kernel.threads, 256, kernel.blocks);
}

// The schedules that tests of order run, 44 in all.
uint32_t usual_schedules_that_find(const Kernel &kernel, bool right) {
  Runs runs;
  uint32_t found = 0;
  for (const CopyCompletion copies : {CopyCompletion::kAtWait, CopyCompletion::kAtIssue})
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kSeeded})
      for (uint64_t seed = 0; seed < (order == Order::kSeeded ? 20 : 1); ++seed) {
        runs.stream.schedule = {order, copies, seed};
        found += !runs.run(config_of(kernel), [&](uint32_t *g) { kernel.body(g, right); }).empty();
      }
  return found;
}

struct Found {
  Explored explored;
  std::string first; // what was wrong
};
Found explore_kernel(const LaunchConfig &config, const std::function<void(uint32_t *)> &body,
                     uint64_t bound = 10000, Reduction reduction = Reduction::kOn) {
  Runs runs;
  Found found;
  found.explored = explore(
      runs.stream, bound,
      [&] {
        found.first = runs.run(config, body);
        return found.first.empty();
      },
      reduction);
  return found;
}

TEST(Explorer, finds_every_wrong_kernel) {
  for (const Kernel &kernel : kKernels) {
    const uint32_t usual = usual_schedules_that_find(kernel, false);
    const Found found =
        explore_kernel(config_of(kernel), [&](uint32_t *g) { kernel.body(g, false); });
    EXPECT_FALSE(found.first.empty()) << kernel.name << ": " << found.explored.text();
    EXPECT_FALSE(found.explored.complete) << kernel.name;
    std::printf("%-26s usual schedules: %2u of 44; explorer: run %llu, %s\n", kernel.name, usual,
                static_cast<unsigned long long>(found.explored.runs), found.first.c_str());
  }
}

TEST(Explorer, covers_every_right_kernel_without_a_report) {
  for (const Kernel &kernel : kKernels) {
    EXPECT_EQ(usual_schedules_that_find(kernel, true), 0u) << kernel.name;
    const Found found =
        explore_kernel(config_of(kernel), [&](uint32_t *g) { kernel.body(g, true); });
    EXPECT_EQ(found.first, "") << kernel.name;
    EXPECT_TRUE(found.explored.complete) << kernel.name << ": " << found.explored.text();
    std::printf("%-26s %s\n", kernel.name, found.explored.text().c_str());
  }
}

} // namespace
} // namespace assay::simt
