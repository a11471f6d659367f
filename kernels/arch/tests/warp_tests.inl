// SPDX-License-Identifier: Apache-2.0
// Threads, barriers, shuffles and votes.
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/tests/test_device.cuh"

namespace assay::ASSAY_TARGET::arch_test {

struct CoordinatesKernel {
  uint32_t *out;
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::block_idx_x() * arch::block_dim() + arch::thread_idx();
    arch::global_store(out + i, arch::lane_id() | arch::warp_id() << 8 | arch::block_idx_x() << 16 |
                                    arch::grid_dim_x() << 24);
  }
};

ASSAY_ARCH_TEST(coordinates) {
  Device device;
  const uint32_t blocks = 3, threads = 96;
  uint32_t *out = device.upload(std::vector<uint32_t>(blocks * threads, 0u));
  device.run({blocks, threads}, CoordinatesKernel{out});
  const auto got = device.download(out, blocks * threads);
  for (uint32_t i = 0; i < blocks * threads; ++i) {
    const uint32_t t = i % threads;
    ASSERT_EQ(got[i], t % 32 | t / 32 << 8 | i / threads << 16 | blocks << 24) << i;
  }
}

enum class Shuffle { kXor, kIdx, kUp, kDown };

struct Wide {
  uint32_t words[5];
};
struct Narrow {
  uint8_t byte;
};

template <class T>
ASSAY_HOST_DEVICE T tagged(uint32_t lane) {
  T value;
  unsigned char bytes[sizeof(T)];
  for (uint32_t i = 0; i < sizeof(T); ++i)
    bytes[i] = static_cast<unsigned char>(lane * 7 + i);
  memcpy(&value, bytes, sizeof(T));
  return value;
}

// Every argument in [0, 31] for one kind of shuffle; the result is 1 where the value is right.
template <class T>
struct ShuffleKernel {
  Shuffle kind;
  uint32_t mask;
  uint8_t *right; // [32 arguments][32 lanes]
  ASSAY_DEVICE void operator()() const {
    const int lane = static_cast<int>(arch::lane_id());
    if (!((mask >> lane) & 1)) return;
    const T mine = tagged<T>(static_cast<uint32_t>(lane));
    for (int arg = 0; arg < 32; ++arg) {
      int source = lane;
      if (kind == Shuffle::kXor) source = lane ^ arg;
      if (kind == Shuffle::kIdx) source = (arg + lane) % 32;
      if (kind == Shuffle::kUp && arg <= lane) source = lane - arg;
      if (kind == Shuffle::kDown && arg <= 31 - lane) source = lane + arg;
      // Reading a lane outside the mask is an error, so such arguments are left out by all lanes.
      if (arch::any(!((mask >> source) & 1), mask)) continue;
      const unsigned delta = static_cast<unsigned>(arg);
      T got = mine;
      if (kind == Shuffle::kXor) got = arch::shfl_xor(mine, arg, mask);
      if (kind == Shuffle::kIdx) got = arch::shfl_idx(mine, source, mask);
      if (kind == Shuffle::kUp) got = arch::shfl_up(mine, delta, mask);
      if (kind == Shuffle::kDown) got = arch::shfl_down(mine, delta, mask);
      const T want = tagged<T>(static_cast<uint32_t>(source));
      arch::global_store(right + arg * 32 + lane,
                         static_cast<uint8_t>(memcmp_device(got, want) ? 1 : 2));
    }
  }
  ASSAY_DEVICE static bool memcmp_device(const T &a, const T &b) {
    unsigned char x[sizeof(T)], y[sizeof(T)];
    memcpy(x, &a, sizeof(T));
    memcpy(y, &b, sizeof(T));
    bool equal = true;
    for (size_t i = 0; i < sizeof(T); ++i)
      equal = equal && x[i] == y[i];
    return equal;
  }
};

template <class T>
void check_shuffles(uint32_t mask, size_t least_checked) {
  for (const Shuffle kind : {Shuffle::kXor, Shuffle::kIdx, Shuffle::kUp, Shuffle::kDown}) {
    Device device;
    uint8_t *right = device.upload(std::vector<uint8_t>(32 * 32, 0));
    device.run({1, 32}, ShuffleKernel<T>{kind, mask, right});
    const auto got = device.download(right, 32 * 32);
    EXPECT_EQ(std::count(got.begin(), got.end(), 2), 0) << static_cast<int>(kind);
    EXPECT_GE(static_cast<size_t>(std::count(got.begin(), got.end(), 1)), least_checked);
  }
}

ASSAY_ARCH_TEST(shuffles_of_every_size) {
  check_shuffles<uint32_t>(arch::kFullMask, 1024);
  check_shuffles<uint64_t>(arch::kFullMask, 1024);
  check_shuffles<arch::Vec4>(arch::kFullMask, 1024);
  check_shuffles<Wide>(arch::kFullMask, 1024);
  check_shuffles<Narrow>(arch::kFullMask, 1024);
}

ASSAY_ARCH_TEST(shuffles_of_part_of_a_warp) {
  check_shuffles<uint32_t>(0x0000ffffu, 16);
  check_shuffles<uint32_t>(0xff000000u, 8);
  check_shuffles<uint32_t>(0x00000010u, 1);
}

// The two halves of a warp shuffle and vote on their own, a different number of times.
struct HalvesKernel {
  uint32_t *out;
  ASSAY_DEVICE void operator()() const {
    const uint32_t lane = arch::lane_id();
    uint32_t v = lane;
    if (lane < 16) {
      for (int step = 8; step > 0; step /= 2)
        v += arch::shfl_xor(v, step, 0x0000ffffu);
    } else {
      v = arch::ballot(lane % 2 == 0, 0xffff0000u);
      arch::warp_barrier(0xffff0000u);
    }
    arch::warp_barrier();
    arch::global_store(out + lane, v);
  }
};

ASSAY_ARCH_TEST(halves_of_a_warp_diverge) {
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(32, 0u));
  device.run({1, 32}, HalvesKernel{out});
  const auto got = device.download(out, 32);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(got[lane], lane < 16 ? 120u : 0x55550000u) << lane;
}

struct VoteKernel {
  uint32_t *out;
  ASSAY_DEVICE void operator()() const {
    const uint32_t lane = arch::lane_id();
    const uint32_t bits = arch::ballot(lane % 3 == 0);
    const uint32_t votes = arch::any(lane == 7) | arch::any(lane == 77) << 1 |
                           arch::all(lane < 32) << 2 | arch::all(lane != 5) << 3;
    arch::global_store(out + 2 * lane, bits);
    arch::global_store(out + 2 * lane + 1, votes);
  }
};

ASSAY_ARCH_TEST(votes) {
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(64, 0u));
  device.run({1, 32}, VoteKernel{out});
  const auto got = device.download(out, 64);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[2 * lane], 0x49249249u);
    EXPECT_EQ(got[2 * lane + 1], 5u);
  }
}

// Values travel to the mirrored thread through shared memory, twice, over the same bytes.
struct MirrorKernel {
  uint32_t *out;
  ASSAY_DEVICE void operator()() const {
    struct Storage {
      uint32_t slot[128];
    };
    Storage &shared = arch::shared_storage<Storage>();
    const uint32_t t = arch::thread_idx(), n = arch::block_dim();
    arch::shared_store(&shared.slot[t], t + 1000);
    arch::block_barrier();
    const uint32_t first = arch::shared_load(&shared.slot[n - 1 - t]);
    arch::block_barrier();
    arch::shared_store(&shared.slot[t], first * 2);
    arch::block_barrier();
    arch::global_store(out + t, arch::shared_load(&shared.slot[n - 1 - t]));
  }
};

ASSAY_ARCH_TEST(block_barrier_orders_shared_memory) {
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(128, 0u));
  device.run({1, 128, 512}, MirrorKernel{out});
  const auto got = device.download(out, 128);
  for (uint32_t t = 0; t < 128; ++t)
    EXPECT_EQ(got[t], 2 * (t + 1000)) << t;
}

// Warps 0 and 1 exchange through barrier 1, warps 2 and 3 through barrier 2, from other lines.
struct NamedKernel {
  uint32_t *out;
  ASSAY_DEVICE void operator()() const {
    struct Storage {
      uint32_t slot[128];
    };
    Storage &shared = arch::shared_storage<Storage>();
    const uint32_t t = arch::thread_idx();
    arch::shared_store(&shared.slot[t], t);
    if (arch::warp_id() == 0)
      arch::named_barrier(1, 64);
    else if (arch::warp_id() == 1)
      arch::named_barrier(1, 64);
    else
      arch::named_barrier(2, 64);
    arch::global_store(out + t, arch::shared_load(&shared.slot[t ^ 32]));
  }
};

ASSAY_ARCH_TEST(named_barriers_are_separate) {
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(128, 0u));
  device.run({1, 128, 512}, NamedKernel{out});
  const auto got = device.download(out, 128);
  for (uint32_t t = 0; t < 128; ++t)
    EXPECT_EQ(got[t], t ^ 32) << t;
}

} // namespace assay::ASSAY_TARGET::arch_test
