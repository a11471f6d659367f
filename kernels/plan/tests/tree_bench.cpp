// SPDX-License-Identifier: Apache-2.0
// What the host's finder of trees costs: the least processor time of several runs. Not a test.
#include "kernels/plan/host_tree.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

namespace assay {
namespace {

constexpr int kPageSize = 16;

/// Keys that requests share in groups of a size.
struct Level {
  int keys, requests;
};

double processor_us() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

void measure(const char *name, int batch, const std::vector<Level> &levels) {
  int columns = 0;
  for (const Level &level : levels)
    columns += level.keys / kPageSize;
  std::vector<int32_t> pages(static_cast<size_t>(batch) * columns), table;
  for (size_t i = 0; i < pages.size(); ++i)
    pages[i] = static_cast<int32_t>(i);
  std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
  for (int r = 0; r < batch; ++r)
    for (const Level &level : levels)
      for (int i = 0; i < level.keys / kPageSize; ++i) {
        const auto first = static_cast<size_t>(r / level.requests * level.requests) * columns;
        table.push_back(pages[first + table.size() % columns]);
      }
  const std::vector<int32_t> lens(static_cast<size_t>(batch), columns * kPageSize);
  const PrefixTreeShape shape{batch, 4, 1, 8, 128, 2, kPageSize, 128, 132, 0, 1 << 17};
  double best = 1e30;
  for (int i = 0; i < 40; ++i) {
    const double begin = processor_us();
    const HostTree tree({shape, table.data(), lens.data(), columns, nullptr});
    best = std::min(best, processor_us() - begin);
  }
  std::printf("%-32s %8.1f us\n", name, best);
}

} // namespace
} // namespace assay

int main() {
  assay::measure("b256 p8192 u256", 256, {{8192, 256}, {256, 1}});
  assay::measure("b256 pairs p8064 u128", 256, {{8064, 2}, {128, 1}});
  assay::measure("b256 groups of 8 p8064 u128", 256, {{8064, 8}, {128, 1}});
  assay::measure("b256 tree of 2048, 512, 128", 256, {{2048, 256}, {512, 16}, {128, 1}});
  assay::measure("b256 alone 8192", 256, {{8192, 1}});
  assay::measure("b1024 alone 8192", 1024, {{8192, 1}});
}
