// SPDX-License-Identifier: Apache-2.0
// Rings of bulk copies, in a block and in a cluster; memory of other blocks, and their barriers.
#include <numeric>

#include "kernels/arch/tests/cluster_ring.h"
#include "kernels/arch/tests/test_device.cuh"

namespace assay::ASSAY_TARGET::arch_test {

// ---- the ring ----

struct RingKernel {
  RingParams params;
  ASSAY_DEVICE void operator()() const { Ring(params, Mistake::kNone).run(); }
};

/// Two tensors of numbers, and `out` for so many threads. Returns the sum of both.
inline uint32_t make_ring(Device &device, RingParams &params, size_t threads) {
  uint32_t total = 0;
  for (uint32_t box = 0; box < 2; ++box) {
    std::vector<uint32_t> words(kTensorRows * 32);
    for (uint32_t i = 0; i < words.size(); ++i)
      total += words[i] = i * 2654435761u + box;
    auto *data = device.upload(words);
    params.data[box] = reinterpret_cast<arch::Vec4 *>(data);
    EXPECT_STREQ(arch::make_tensor_map(params.maps[box], ring_shape(data)), nullptr);
  }
  params.out = device.upload(std::vector<uint32_t>(threads, 0u));
  return total;
}

/// Each warp of consumers has the sum of both tensors.
inline void expect_sums(Device &device, const RingParams &params, size_t threads, uint32_t total) {
  const auto sums = device.download(params.out, threads);
  for (auto warp = sums.begin(); warp != sums.end(); warp += 32)
    EXPECT_EQ(std::accumulate(warp, warp + 32, 0u), total);
}

ASSAY_ARCH_TEST(a_ring_of_copies_feeds_two_consumers) {
  Device device;
  RingKernel kernel = {};
  const uint32_t total = make_ring(device, kernel.params, 64);
  device.run({1, Ring::kThreads, sizeof(RingStorage)}, kernel);
  expect_sums(device, kernel.params, 64, total);
}

// ---- clusters ----

struct ClusterRingKernel {
  RingParams params;
  ASSAY_DEVICE void operator()() const { ClusterRing(params, ClusterMistake::kNone).run(); }
};

ASSAY_ARCH_TEST(a_ring_of_multicasts_feeds_a_cluster) {
  constexpr size_t kBlocks = 4, kConsumers = 64 * kBlocks; // two clusters
  Device device;
  ClusterRingKernel kernel = {};
  const uint32_t total = make_ring(device, kernel.params, kConsumers);
  device.run({kBlocks, ClusterRing::kThreads, sizeof(RingStorage), kClusterBlocks}, kernel);
  expect_sums(device, kernel.params, kConsumers, total);
}

struct ClusterSumKernel {
  uint32_t *out;
  ASSAY_DEVICE void operator()() const { ClusterSum::run(out, ClusterMistake::kNone); }
};

ASSAY_ARCH_TEST(blocks_read_and_write_each_others_memory) {
  constexpr uint32_t kBlocks = 4, kThreads = ClusterSum::kThreads;
  Device device;
  auto *out = device.upload(std::vector<uint32_t>(kBlocks * kThreads, 0u));
  device.run({kBlocks, kThreads, sizeof(ClusterSum::Storage), kClusterBlocks},
             ClusterSumKernel{out});
  const auto got = device.download(out, kBlocks * kThreads);
  for (uint32_t i = 0; i < got.size(); ++i) // what it read there, and what the other one read here
    EXPECT_EQ(got[i], 1000 + 2 * (kThreads - 1 - i % kThreads)) << i;
}

/// Eight blocks add up their ranks in a tree of remote stores.
struct ClusterTreeKernel {
  uint32_t *out; // [blocks]
  ASSAY_DEVICE void operator()() const {
    struct Storage {
      uint32_t mine, received;
    };
    Storage &shared = arch::shared_storage<Storage>();
    const uint32_t rank = arch::cluster_rank(), size = arch::cluster_size();
    uint32_t sum = rank + 1;
    arch::cluster_barrier();
    for (uint32_t step = size / 2; step > 0; step /= 2) {
      if (arch::thread_idx() == 0 && rank >= step && rank < 2 * step)
        arch::cluster_store(&shared.received, sum, rank - step);
      arch::cluster_barrier();
      if (arch::thread_idx() == 0 && rank < step) sum += arch::shared_load(&shared.received);
      arch::cluster_barrier();
    }
    if (arch::thread_idx() == 0) arch::global_store(out + arch::block_idx_x(), sum);
  }
};

ASSAY_ARCH_TEST(eight_blocks_meet) {
  Device device;
  auto *out = device.upload(std::vector<uint32_t>(16, 0u));
  device.run({16, 128, 64, 8}, ClusterTreeKernel{out});
  const auto got = device.download(out, 16);
  EXPECT_EQ(got[0], 36u);
  EXPECT_EQ(got[8], 36u);
}

} // namespace assay::ASSAY_TARGET::arch_test
