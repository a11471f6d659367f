// SPDX-License-Identifier: Apache-2.0
// wgmma: where operands lie, and that its arithmetic is that of mma_m16n8k16, block after block.
// Behind mma_tests.inl, whose patterns and model it uses.
#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/wgmma.cuh"

namespace assay::ASSAY_TARGET::arch_test {

// Four steps of depth 16 on A (64 x 64) and B: N rows of 64, or 64 rows of N (N-major).
template <class E, int kColumns, bool kRegisters>
struct WgmmaKernel {
  static constexpr int kM = 64, kK = 64;
  const arch::Vec4 *a; // [block][64][64]
  const arch::Vec4 *b; // [block][kColumns][64], N-major [block][64][kColumns]
  float *c;            // [block][64][kColumns], in place

  struct Storage {
    alignas(1024) arch::Vec4 a[kM * kK / 8];
    alignas(1024) arch::Vec4 b[kColumns * kK / 8];
  };
  // Rows of 64 elements, swizzled.
  static ASSAY_DEVICE int place(int row, int chunk) { return row * 8 + (chunk ^ row % 8); }

  ASSAY_DEVICE void operator()() const {
    Storage &shared = arch::shared_storage<Storage>();
    const int thread = static_cast<int>(arch::thread_idx()), lane = thread % 32;
    const int64_t block = arch::block_idx_x();
    for (int i = thread; i < kM * 8; i += 128)
      arch::shared_store(&shared.a[place(i / 8, i % 8)], arch::global_load(a + block * kM * 8 + i));
    constexpr int kBChunks = kRegisters ? kColumns / 8 : 8; // chunks of a row
    for (int i = thread; i < kColumns * 8; i += 128) {
      const int row = i / kBChunks, chunk = i % kBChunks;
      arch::shared_store(&shared.b[chunk / 8 * kK * 8 + place(row, chunk % 8)],
                         arch::global_load(b + block * kColumns * 8 + i));
    }
    arch::fence_async_proxy();
    arch::block_barrier();
    float acc[kColumns / 2];
    const auto row_of = [&](int i) { return thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8; };
    const auto at = [&](int i) {
      return c + (block * kM + row_of(i)) * kColumns + i / 4 * 8 + lane % 4 * 2 + i % 2;
    };
    ASSAY_UNROLL
    for (int i = 0; i < kColumns / 2; ++i)
      acc[i] = arch::global_load(at(i));
    uint32_t rows[4][4];
    ASSAY_UNROLL
    for (int step = 0; step < 4; ++step)
      ASSAY_UNROLL
    for (int r = 0; r < 4; ++r) {
      const int column = 16 * step + lane % 4 * 2 + r / 2 * 8;
      rows[step][r] = arch::global_load(reinterpret_cast<const uint32_t *>(a) +
                                        (block * kM + row_of(2 * r)) * kK / 2 + column / 2);
    }
    arch::wgmma_fence(acc, rows);
    ASSAY_UNROLL
    for (int step = 0; step < 4; ++step)
      if constexpr (kRegisters)
        arch::wgmma_m64k16<E>(acc, rows[step],
                              arch::NMajorMatrix(shared.b, kK * 128).at(step * 2048), true);
      else
        arch::wgmma_m64k16<E>(acc, arch::KMajorMatrix(shared.a).at(step * 32),
                              arch::KMajorMatrix(shared.b).at(step * 32), true);
    arch::wgmma_commit();
    arch::wgmma_wait<0>(acc);
    ASSAY_UNROLL
    for (int i = 0; i < kColumns / 2; ++i)
      arch::global_store(at(i), acc[i]);
  }
};

template <class E, int kColumns, bool kRegisters>
void check_wgmma(Random &random, uint32_t blocks, int spread) {
  using Kernel = WgmmaKernel<E, kColumns, kRegisters>;
  constexpr size_t kM = 64, kK = 64, kN = kColumns;
  std::vector<uint16_t> a(blocks * kM * kK), b(blocks * kN * kK);
  std::vector<float> c(blocks * kM * kN);
  for (auto &x : a)
    x = random_pattern<E>(random, spread);
  for (auto &x : b)
    x = random_pattern<E>(random, spread);
  for (auto &x : c)
    x = std::ldexp(static_cast<float>(random.between(-1 << 23, 1 << 23)),
                   random.between(-23 - spread, spread - 23));
  Device device;
  float *out = device.upload(c);
  device.run({blocks, 128, sizeof(typename Kernel::Storage)},
             Kernel{reinterpret_cast<const arch::Vec4 *>(device.upload(a)),
                    reinterpret_cast<const arch::Vec4 *>(device.upload(b)), out});
  const auto got = device.download(out, c.size());
  const ExactFormat format =
      kIsBf16<E> ? assay::arch_test::kExactBf16 : assay::arch_test::kExactFp16;
  size_t wrong = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    const size_t block = i / (kM * kN), m = i / kN % kM, n = i % kN;
    float want = c[i];
    for (size_t step = 0; step < 4; ++step) {
      std::vector<double> x(16), y(16);
      for (size_t k = 0; k < 16; ++k) {
        const size_t depth = 16 * step + k;
        x[k] = value_of<E>(a[(block * kM + m) * kK + depth]);
        y[k] = value_of<E>(kRegisters ? b[(block * kK + depth) * kN + n]
                                      : b[(block * kN + n) * kK + depth]);
      }
      want = exact_block(want, x, y, format, 25);
    }
    if (bits_of(got[i]) == bits_of(want)) continue;
    if (++wrong <= 3)
      ADD_FAILURE() << "block " << block << " row " << m << " column " << n << ": got " << got[i]
                    << ", the model says " << want;
  }
  EXPECT_EQ(wrong, 0u) << "of " << c.size();
}

template <class E>
void check_wgmma_shapes(uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < mma_rounds(); ++round)
    for (const int spread : {1, 6, kIsBf16<E> ? 20 : 12}) {
      check_wgmma<E, 64, false>(random, 1, spread);
      check_wgmma<E, 128, false>(random, 1, spread);
      check_wgmma<E, 64, true>(random, 1, spread);
      check_wgmma<E, 128, true>(random, 1, spread);
    }
}

ASSAY_ARCH_TEST(wgmma_is_a_chain_of_blocks) {
  check_wgmma_shapes<arch::bf16>(11);
  check_wgmma_shapes<arch::fp16>(12);
}

// ---- mbarriers ----

// One warp hands numbers to another through a slot, round after round.
struct HandOverKernel {
  uint32_t *out; // [rounds * 32]
  int rounds;
  ASSAY_DEVICE void operator()() const {
    struct Storage {
      uint32_t slot[32];
      arch::Mbarrier full, empty;
    };
    Storage &shared = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      arch::mbarrier_init(&shared.full, 32);
      arch::mbarrier_init(&shared.empty, 1);
    }
    arch::block_barrier();
    const uint32_t lane = arch::lane_id();
    for (int round = 0; round < rounds; ++round) {
      const uint32_t parity = static_cast<uint32_t>(round) & 1;
      if (arch::warp_id() == 0) {
        arch::mbarrier_wait(&shared.empty, parity ^ 1);
        arch::shared_store(&shared.slot[lane ^ 5], static_cast<uint32_t>(round) * 32 + lane);
        arch::mbarrier_arrive(&shared.full);
      } else {
        arch::mbarrier_wait(&shared.full, parity);
        arch::global_store(out + round * 32 + lane, arch::shared_load(&shared.slot[lane]));
        arch::warp_barrier();
        if (lane == 0) arch::mbarrier_arrive(&shared.empty);
      }
    }
  }
};

ASSAY_ARCH_TEST(mbarriers_hand_a_slot_over) {
  constexpr int kRounds = 7;
  Device device;
  uint32_t *out = device.upload(std::vector<uint32_t>(kRounds * 32, 0u));
  device.run({1, 64, 256}, HandOverKernel{out, kRounds});
  const auto got = device.download(out, kRounds * 32);
  for (uint32_t i = 0; i < kRounds * 32; ++i)
    EXPECT_EQ(got[i], i / 32 * 32 + (i % 32 ^ 5)) << i;
}

} // namespace assay::ASSAY_TARGET::arch_test
