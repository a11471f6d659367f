// SPDX-License-Identifier: Apache-2.0
// Shared and global memory, atomics, async copies.
#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/tests/test_device.cuh"

namespace assay::ASSAY_TARGET::arch_test {

struct Two {
  uint16_t a;
};
struct Eight {
  uint32_t a, b;
};
struct Bytes16 {
  unsigned char b[16];
};

// Moves bytes through every width of access: global -> shared -> global.
template <class T>
struct WidthKernel {
  const T *in;
  T *out;
  int how;
  ASSAY_DEVICE void operator()() const {
    struct alignas(16) Storage {
      unsigned char bytes[32 * sizeof(T)];
    };
    Storage &shared = arch::shared_storage<Storage>();
    T *slots = reinterpret_cast<T *>(shared.bytes);
    const uint32_t t = arch::thread_idx();
    const T v = how == 0   ? arch::global_load(in + t)
                : how == 1 ? arch::global_load_streaming(in + t)
                           : arch::global_load_readonly(in + t);
    arch::shared_store(slots + t, v);
    arch::warp_barrier();
    arch::global_store(out + t, arch::shared_load(slots + (31 - t)));
  }
};

template <class T>
void check_width() {
  for (int how = 0; how < 3; ++how) {
    Device device;
    std::vector<unsigned char> bytes(32 * sizeof(T));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<unsigned char>(i * 37 + 11);
    std::vector<T> values(32);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    T *in = device.upload(values), *out = device.upload(std::vector<T>(32));
    device.run({1, 32, 32 * sizeof(T)}, WidthKernel<T>{in, out, how});
    const auto got = device.download(out, 32);
    for (size_t t = 0; t < 32; ++t)
      EXPECT_EQ(std::memcmp(&got[t], &values[31 - t], sizeof(T)), 0) << how << " " << t;
  }
}

ASSAY_ARCH_TEST(accesses_of_every_width) {
  check_width<uint8_t>();
  check_width<Two>();
  check_width<float>();
  check_width<Eight>();
  check_width<arch::Vec4>();
}

// The usual "last block reduces" pattern; the counter must be back at zero afterwards.
struct LastBlockKernel {
  uint32_t *partial, *counter, *total;
  ASSAY_DEVICE void operator()() const {
    struct Storage {
      uint32_t last;
    };
    Storage &shared = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      arch::global_store(partial + arch::block_idx_x(), arch::block_idx_x() + 1);
      arch::fence_gpu();
      const uint32_t arrived = arch::atomic_inc_acq_rel(counter, arch::grid_dim_x() - 1);
      arch::shared_store(&shared.last, arrived == arch::grid_dim_x() - 1 ? 1u : 0u);
    }
    arch::block_barrier();
    if (arch::shared_load(&shared.last) == 0 || arch::thread_idx() != 0) return;
    uint32_t sum = 0;
    for (uint32_t b = 0; b < arch::grid_dim_x(); ++b)
      sum += arch::global_load(partial + b);
    arch::global_store(total, sum);
  }
};

ASSAY_ARCH_TEST(atomic_inc_wraps_and_finds_the_last_block) {
  Device device;
  uint32_t *partial = device.upload(std::vector<uint32_t>(40, 0u));
  uint32_t *counter = device.upload(std::vector<uint32_t>(2, 0u));
  for (int run = 0; run < 2; ++run) {
    device.run({40, 64, 4}, LastBlockKernel{partial, counter, counter + 1});
    const auto got = device.download(counter, 2);
    EXPECT_EQ(got[0], 0u);
    EXPECT_EQ(got[1], 40u * 41 / 2);
  }
}

struct AtomicAddKernel {
  uint32_t *sum, *olds;
  ASSAY_DEVICE void operator()() const {
    const uint32_t i = arch::block_idx_x() * arch::block_dim() + arch::thread_idx();
    arch::global_store(olds + i, arch::atomic_add_acq_rel(sum, 3));
  }
};

ASSAY_ARCH_TEST(atomic_add_returns_every_old_value_once) {
  Device device;
  const uint32_t count = 4 * 64;
  uint32_t *sum = device.upload(std::vector<uint32_t>(1, 0xfffffff0u));
  uint32_t *olds = device.upload(std::vector<uint32_t>(count, 0u));
  device.run({4, 64}, AtomicAddKernel{sum, olds});
  EXPECT_EQ(device.download(sum, 1)[0], 0xfffffff0u + 3 * count);
  auto got = device.download(olds, count);
  for (auto &old : got)
    old -= 0xfffffff0u;
  std::sort(got.begin(), got.end());
  for (uint32_t i = 0; i < count; ++i)
    EXPECT_EQ(got[i], 3 * i);
}

// Three groups in flight; each stage is used after its own wait. Odd threads copy zeros, from an
// address that must not be read.
struct AsyncKernel {
  const arch::Vec4 *in;
  arch::Vec4 *out;
  ASSAY_DEVICE void operator()() const {
    struct Storage {
      arch::Vec4 stage[3][64];
    };
    Storage &shared = arch::shared_storage<Storage>();
    const uint32_t t = arch::thread_idx();
    const bool valid = t % 2 == 0;
    for (uint32_t s = 0; s < 3; ++s) {
      arch::cp_async_16(&shared.stage[s][t], valid ? in + s * 64 + t : nullptr, valid);
      arch::cp_async_commit();
    }
    arch::cp_async_wait<2>();
    arch::block_barrier();
    arch::global_store(out + t, arch::shared_load(&shared.stage[0][63 - t]));
    arch::cp_async_wait<1>();
    arch::block_barrier();
    arch::global_store(out + 64 + t, arch::shared_load(&shared.stage[1][63 - t]));
    arch::cp_async_wait<0>();
    arch::block_barrier();
    arch::global_store(out + 128 + t, arch::shared_load(&shared.stage[2][63 - t]));
  }
};

ASSAY_ARCH_TEST(async_copies_in_three_stages) {
  Device device;
  std::vector<arch::Vec4> values(192);
  for (uint32_t i = 0; i < 192; ++i)
    values[i] = {i, i + 1000, i + 2000, i + 3000};
  const arch::Vec4 *in = device.upload(values);
  arch::Vec4 *out = device.upload(std::vector<arch::Vec4>(192));
  device.run({1, 64, 3 * 64 * 16}, AsyncKernel{in, out});
  const auto got = device.download(out, 192);
  for (uint32_t i = 0; i < 192; ++i) {
    const uint32_t source = i / 64 * 64 + (63 - i % 64);
    const bool valid = source % 2 == 0;
    EXPECT_EQ(got[i].x, valid ? source : 0) << i;
    EXPECT_EQ(got[i].w, valid ? source + 3000 : 0) << i;
  }
}

} // namespace assay::ASSAY_TARGET::arch_test
