// SPDX-License-Identifier: Apache-2.0
// Bulk copies: where a box lies in shared memory, swizzled or not, what is zero, and which bytes
// end a phase of an mbarrier.
#include <cstdlib>
#include <numeric>

#include "kernels/arch/bulk_copy.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/tests/test_device.cuh"

namespace assay::ASSAY_TARGET::arch_test {

// ---- boxes ----

constexpr int kBoxBytes = 8192; // at most

/// Copies one box after the other into the same memory, which holds other bytes before the first.
template <int kRank>
struct BoxKernel {
  arch::TensorMap map;
  const int32_t *at; // [boxes][kRank]
  arch::Vec4 *out;   // [boxes][bytes / 16]
  int boxes;
  uint32_t bytes;

  struct Storage {
    alignas(1024) arch::Vec4 box[kBoxBytes / 16];
    arch::Mbarrier full;
  };

  ASSAY_DEVICE void operator()() const {
    Storage &shared = arch::shared_storage<Storage>();
    const auto thread = static_cast<int>(arch::thread_idx());
    const auto threads = static_cast<int>(arch::block_dim());
    const int vectors = static_cast<int>(bytes / 16);
    for (int i = thread; i < vectors; i += threads)
      arch::shared_store(&shared.box[i], arch::Vec4{~0u, ~0u, ~0u, ~0u});
    arch::fence_async_proxy();
    if (thread == 0) {
      arch::mbarrier_init(&shared.full, 1);
      arch::fence_mbarrier_init();
      arch::prefetch_tensor_map(map);
    }
    arch::block_barrier();
    for (int box = 0; box < boxes; ++box) {
      if (thread == 0) {
        int32_t begin[kRank];
        ASSAY_UNROLL
        for (int d = 0; d < kRank; ++d)
          begin[d] = arch::global_load(at + box * kRank + d);
        arch::mbarrier_arrive_expect_tx(&shared.full, bytes);
        arch::tensor_copy(shared.box, map, begin, &shared.full);
      }
      arch::mbarrier_wait(&shared.full, static_cast<uint32_t>(box) & 1);
      for (int i = thread; i < vectors; i += threads)
        arch::global_store(out + box * vectors + i, arch::shared_load(&shared.box[i]));
      arch::block_barrier();
    }
  }
};

/// A shape with rows that end anywhere, strides with gaps, and a box of at most kBoxBytes.
inline arch::TensorShape random_shape(Random &random, int rank, bool swizzled) {
  arch::TensorShape shape;
  shape.rank = rank;
  shape.element_bytes = 1 << random.between(0, 3);
  shape.swizzle = swizzled ? arch::Swizzle::k128Bytes : arch::Swizzle::kNone;
  uint32_t row = swizzled ? 128 : 16 * static_cast<uint32_t>(random.between(1, 8));
  while (row / static_cast<uint32_t>(shape.element_bytes) > 256)
    row /= 2;
  shape.box[0] = row / static_cast<uint32_t>(shape.element_bytes);
  uint32_t room = kBoxBytes / row;
  for (int d = 0; d < rank; ++d) {
    if (d > 0) {
      const int most = static_cast<int>(std::min<uint32_t>(room, rank == 2 ? 64 : 6));
      shape.box[d] = static_cast<uint32_t>(random.between(1, most));
      room /= shape.box[d];
    }
    const int widest = static_cast<int>(shape.box[d]) * 2 + 3;
    shape.size[d] = static_cast<uint64_t>(random.between(1, rank > 3 ? 5 : widest));
    if (d == 0) continue;
    const uint64_t inner =
        d == 1 ? static_cast<uint64_t>(shape.element_bytes) : shape.stride[d - 1];
    const uint64_t packed = (inner * shape.size[d - 1] + 15) / 16 * 16;
    shape.stride[d] = packed + 16 * static_cast<uint64_t>(random.between(0, 2));
  }
  return shape;
}

inline size_t tensor_bytes(const arch::TensorShape &shape) {
  uint64_t bytes = shape.size[0] * static_cast<uint64_t>(shape.element_bytes);
  for (int d = 1; d < shape.rank; ++d)
    bytes += (shape.size[d] - 1) * shape.stride[d];
  return static_cast<size_t>(bytes);
}

/// The box that begins at `at`, an element at a time.
inline std::vector<uint8_t> expected_box(const arch::TensorShape &shape,
                                         const std::vector<uint8_t> &data, const int32_t *at) {
  const auto width = static_cast<size_t>(shape.element_bytes);
  std::vector<uint8_t> box(arch::box_bytes(shape));
  for (size_t element = 0; element < box.size() / width; ++element) {
    size_t rest = element, from = 0;
    bool inside = true;
    for (int d = 0; d < shape.rank; ++d) {
      const int64_t index = at[d] + static_cast<int64_t>(rest % shape.box[d]);
      rest /= shape.box[d];
      inside = inside && index >= 0 && index < static_cast<int64_t>(shape.size[d]);
      from += inside ? static_cast<size_t>(index) * (d == 0 ? width : shape.stride[d]) : 0;
    }
    size_t to = element * width;
    if (shape.swizzle == arch::Swizzle::k128Bytes) to ^= to / 128 % 8 * 16;
    for (size_t i = 0; i < width; ++i)
      box[to + i] = inside ? data[from + i] : 0;
  }
  return box;
}

template <int kRank>
void check_boxes(Random &random, bool swizzled) {
  constexpr int kBoxes = 12;
  arch::TensorShape shape = random_shape(random, kRank, swizzled);
  std::vector<uint8_t> data((tensor_bytes(shape) + 15) / 16 * 16);
  for (auto &byte : data)
    byte = static_cast<uint8_t>(1 + random.bits() % 255);
  std::vector<int32_t> at(kBoxes * kRank, 0); // the first one begins at the origin
  for (size_t i = kRank; i < at.size(); ++i) {
    const auto d = i % kRank;
    const int box = static_cast<int>(shape.box[d]);
    at[i] = random.between(-box, static_cast<int>(shape.size[d]) + 1);
    if (d == 0) at[i] -= at[i] % (16 / shape.element_bytes);
  }
  Device device;
  shape.data = device.upload(data);
  const uint32_t bytes = arch::box_bytes(shape);
  BoxKernel<kRank> kernel = {};
  ASSERT_STREQ(arch::make_tensor_map(kernel.map, shape), nullptr);
  kernel.at = device.upload(at);
  auto *out = device.upload(std::vector<uint8_t>(kBoxes * bytes, 0));
  kernel.out = reinterpret_cast<arch::Vec4 *>(out);
  kernel.boxes = kBoxes;
  kernel.bytes = bytes;
  device.run({1, 64, sizeof(typename BoxKernel<kRank>::Storage)}, kernel);
  const auto got = device.download(out, kBoxes * bytes);
  for (int box = 0; box < kBoxes; ++box) {
    const auto want = expected_box(shape, data, &at[static_cast<size_t>(box) * kRank]);
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin() + box * bytes))
        << "box " << box << " of rank " << kRank << ", elements of " << shape.element_bytes
        << " bytes" << (swizzled ? ", swizzled" : "");
  }
}

/// Shapes for each rank; ASSAY_BULK_ROUNDS raises it, for a device.
inline int bulk_rounds() {
  const char *rounds = std::getenv("ASSAY_BULK_ROUNDS");
  return rounds != nullptr ? std::atoi(rounds) : ASSAY_IS_CUDA ? 50 : 3;
}

inline void check_boxes_of_each_rank(uint64_t seed, bool swizzled) {
  Random random(seed);
  for (int round = 0; round < bulk_rounds(); ++round) {
    check_boxes<1>(random, swizzled);
    check_boxes<2>(random, swizzled);
    check_boxes<3>(random, swizzled);
    check_boxes<4>(random, swizzled);
    check_boxes<5>(random, swizzled);
  }
}

ASSAY_ARCH_TEST(boxes_are_dense_and_zero_outside) { check_boxes_of_each_rank(21, false); }
ASSAY_ARCH_TEST(boxes_are_swizzled_in_rows_of_128_bytes) { check_boxes_of_each_rank(22, true); }

ASSAY_ARCH_TEST_ONCE(impossible_tensor_maps_are_refused) {
  Device device;
  arch::TensorShape right;
  right.data = device.upload(std::vector<uint8_t>(4096));
  right.rank = 2;
  right.size[0] = right.box[0] = 64;
  right.size[1] = right.box[1] = 16;
  right.stride[1] = 128;
  arch::TensorMap map;
  EXPECT_STREQ(arch::make_tensor_map(map, right), nullptr);
  const auto refuses = [&](const char *what, auto change) {
    arch::TensorShape shape = right;
    change(shape);
    EXPECT_NE(arch::make_tensor_map(map, shape), nullptr) << what;
  };
  using Shape = arch::TensorShape;
  refuses("rank", [](Shape &s) { s.rank = 6; });
  refuses("element", [](Shape &s) { s.element_bytes = 3; });
  refuses("data", [](Shape &s) { s.data = static_cast<const char *>(s.data) + 8; });
  refuses("size", [](Shape &s) { s.size[1] = 0; });
  refuses("stride", [](Shape &s) { s.stride[1] = 120; });
  refuses("box", [](Shape &s) { s.box[1] = 257; });
  refuses("row", [](Shape &s) { s.box[0] = 60; });
  refuses("swizzled row", [](Shape &s) {
    s.box[0] = 32;
    s.swizzle = arch::Swizzle::k128Bytes;
  });
}

// ---- bytes of a phase ----

/// A phase counts two copies, of which the second one begins long after the first one. Who waits
/// reads what the second one brings. By turns the bytes are expected apart, with the arrival, or
/// behind the copies.
struct TwoCopiesKernel {
  const arch::Vec4 *source; // [rounds][kVectors + 1]
  arch::Vec4 *out;          // [rounds][kVectors + 1]
  int rounds;
  static constexpr int kVectors = 256;

  struct Storage {
    alignas(128) arch::Vec4 slot[kVectors + 1];
    arch::Mbarrier full;
  };
  static ASSAY_DEVICE void pause() {
#if ASSAY_IS_CUDA
    __nanosleep(3000);
#endif
  }

  ASSAY_DEVICE void copy(Storage &shared, int round) const {
    constexpr uint32_t kSecond = 16 * kVectors;
    const arch::Vec4 *from = source + round * (kVectors + 1);
    if (round % 3 == 0) arch::mbarrier_expect_tx(&shared.full, 16);
    if (round % 3 == 0) arch::mbarrier_expect_tx(&shared.full, kSecond);
    if (round % 3 == 1) arch::mbarrier_arrive_expect_tx(&shared.full, 16 + kSecond);
    arch::bulk_copy(shared.slot + kVectors, from + kVectors, 16, &shared.full);
    if (round % 3 == 0) arch::mbarrier_arrive(&shared.full);
    pause();
    arch::bulk_copy(shared.slot, from, kSecond, &shared.full);
    if (round % 3 != 2) return;
    pause();
    arch::mbarrier_arrive_expect_tx(&shared.full, 16 + kSecond);
  }

  ASSAY_DEVICE void operator()() const {
    Storage &shared = arch::shared_storage<Storage>();
    const auto thread = static_cast<int>(arch::thread_idx());
    if (thread == 0) {
      arch::mbarrier_init(&shared.full, 2);
      arch::fence_mbarrier_init();
    }
    arch::block_barrier();
    for (int round = 0; round < rounds; ++round) {
      if (thread == 0) copy(shared, round);
      if (thread == 32) arch::mbarrier_arrive(&shared.full);
      arch::mbarrier_wait(&shared.full, static_cast<uint32_t>(round) & 1);
      for (int i = thread; i <= kVectors; i += 64)
        arch::global_store(out + round * (kVectors + 1) + i, arch::shared_load(&shared.slot[i]));
      arch::block_barrier();
    }
  }
};

ASSAY_ARCH_TEST(a_phase_ends_with_its_last_byte) {
  constexpr int kRounds = 9;
  constexpr size_t kWords = 4 * kRounds * (TwoCopiesKernel::kVectors + 1);
  std::vector<uint32_t> source(kWords);
  std::iota(source.begin(), source.end(), 1u);
  Device device;
  auto *out = device.upload(std::vector<uint32_t>(kWords, 0u));
  device.run({1, 64, sizeof(TwoCopiesKernel::Storage)},
             TwoCopiesKernel{reinterpret_cast<const arch::Vec4 *>(device.upload(source)),
                             reinterpret_cast<arch::Vec4 *>(out), kRounds});
  EXPECT_EQ(device.download(out, kWords), source);
}

} // namespace assay::ASSAY_TARGET::arch_test
