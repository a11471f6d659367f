// SPDX-License-Identifier: Apache-2.0
// Schedules that let others run in front of any access. The hooks of instrumented loads and stores
// are called by hand here, as the compiler calls them in an instrumented build.
#include <set>
#include <vector>

#include "kernels/simt/tests/explored_kernels.h"

extern "C" {
void __sanitizer_cov_load4(const void *address);
void __sanitizer_cov_store4(const void *address);
}

namespace assay::simt {
namespace {

constexpr uint64_t kSeeds = 40;

uint32_t raw_load(const uint32_t *p) {
  __sanitizer_cov_load4(p);
  return *p;
}
void raw_store(uint32_t *p, uint32_t value) {
  __sanitizer_cov_store4(p);
  *p = value;
}

// What is in the first word of global memory when two threads have run `body`.
template <class Body>
uint32_t result_of(uint32_t distance, uint64_t seed, Body body) {
  uint32_t words[4] = {};
  Stream stream;
  stream.memory.adopt(words, sizeof words, Access::kReadWrite, "words");
  stream.schedule = {.order = Order::kSeeded, .seed = seed, .distance = distance};
  EXPECT_EQ(launch(&stream, block_of(2), [&] { body(words); }), LaunchStatus::kOk);
  return words[0];
}
template <class Body>
std::set<uint32_t> results_of(uint32_t distance, Body body) {
  std::set<uint32_t> results;
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    results.insert(result_of(distance, seed, body));
  return results;
}

// A counter that is loaded and stored, in place of an addition.
void count_raw(uint32_t *words) { raw_store(words, raw_load(words) + 1); }
void count_in_two_steps(uint32_t *words) {
  explored::atomic_store(words, explored::atomic_load(words) + 1);
}
// As an instrumented primitive does it.
void count_atomically(uint32_t *words) {
  atomic_access(words, 4, AtomicKind::kReadModifyWrite, AtomicOrder::kRelaxed, Scope::kGpu,
                Site::here());
  raw_store(words, raw_load(words) + 1);
}

TEST(FineSchedule, raw_accesses_to_global_memory_are_parted) {
  EXPECT_EQ(results_of(2, count_raw), (std::set<uint32_t>{1, 2}));
}

TEST(FineSchedule, atomic_accesses_are_parted) {
  EXPECT_EQ(results_of(2, count_in_two_steps), (std::set<uint32_t>{1, 2}));
}

TEST(FineSchedule, one_atomic_operation_is_not_parted) {
  EXPECT_EQ(results_of(1, count_atomically), (std::set<uint32_t>{2}));
}

TEST(FineSchedule, raw_accesses_to_the_stack_are_no_points) {
  const auto body = [](uint32_t *words) {
    uint32_t mine = 0;
    for (int i = 0; i < 8; ++i)
      raw_store(&mine, raw_load(&mine) + 1);
    words[0] += mine; // nobody hears of it
  };
  EXPECT_EQ(results_of(1, body), (std::set<uint32_t>{16}));
}

TEST(FineSchedule, the_same_seed_gives_the_same_run) {
  const auto order_of = [](uint32_t distance, uint64_t seed) {
    uint32_t words[4] = {};
    Stream stream;
    stream.memory.adopt(words, sizeof words, Access::kReadWrite, "words");
    stream.schedule = {.order = Order::kSeeded, .seed = seed, .distance = distance};
    std::vector<uint32_t> order;
    const auto body = [&] {
      for (int i = 0; i < 20; ++i) {
        raw_load(words);
        order.push_back(me());
      }
    };
    EXPECT_EQ(launch(&stream, block_of(40), body), LaunchStatus::kOk);
    return order;
  };
  const auto switches = [](const std::vector<uint32_t> &order) {
    size_t count = 0;
    for (size_t i = 1; i < order.size(); ++i)
      count += order[i] != order[i - 1];
    return count;
  };
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    orders.insert(order_of(4, seed));
    EXPECT_EQ(order_of(4, seed), order_of(4, seed));
    EXPECT_GT(switches(order_of(4, seed)), switches(order_of(64, seed)));
  }
  EXPECT_EQ(orders.size(), 10u);
}

// Which of the kernels that are wrong on some schedules 40 fine ones find.
TEST(FineSchedule, finds_what_needs_other_threads_between_two_accesses) {
  using namespace explored;
  for (const Kernel &kernel : kKernels) {
    uint32_t found[2] = {};
    for (const bool right : {false, true}) {
      std::vector<uint32_t> first;
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        alignas(16) uint32_t words[kWords] = {};
        Stream stream;
        stream.memory.adopt(words, sizeof words, Access::kReadWrite, "words");
        stream.schedule = {.order = Order::kSeeded,
                           .copies = CopyCompletion::kSeeded,
                           .seed = seed,
                           .distance = 2};
        launch(&stream, block_of(kernel.threads, 256, kernel.blocks),
               [&] { kernel.body(words, right); });
        const std::vector<uint32_t> result(words + kResult, words + kWords);
        if (first.empty()) first = result;
        found[right] += !stream.hazards.empty() || result != first;
      }
    }
    EXPECT_GT(found[false], 0u) << kernel.name;
    EXPECT_EQ(found[true], 0u) << kernel.name;
    std::printf("%-26s fine schedules: %2u of %u\n", kernel.name, found[false],
                static_cast<unsigned>(kSeeds));
  }
}

} // namespace
} // namespace assay::simt
