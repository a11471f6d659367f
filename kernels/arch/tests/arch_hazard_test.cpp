// SPDX-License-Identifier: Apache-2.0
// Wrong uses of the vocabulary on simt: each is stopped, and the message names the kernel's line.
#include <gtest/gtest.h>

#include "kernels/abi/plugin.h"
#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/mma.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/simt/launch.h"

namespace assay::n_simt {
namespace {

using simt::HazardKind;

struct alignas(16) Storage {
  uint16_t half[512];
};

simt::Hazard run(uint32_t threads, simt::FunctionRef<void()> body) {
  simt::Stream stream;
  simt::LaunchConfig config;
  config.block = threads;
  config.shared_bytes = sizeof(Storage);
  EXPECT_EQ(simt::launch(&stream, config, body), simt::LaunchStatus::kHazard);
  return stream.hazards.empty() ? simt::Hazard{} : stream.hazards.back();
}

void expect(const simt::Hazard &hazard, HazardKind kind, uint32_t line, const char *text) {
  EXPECT_EQ(hazard.kind, kind) << hazard.message;
  const std::string begin = "kernels/arch/tests/arch_hazard_test.cpp:" + std::to_string(line) +
                            ": " + to_string(kind) + ": ";
  EXPECT_EQ(hazard.message.substr(0, begin.size()), begin);
  EXPECT_NE(hazard.message.find(text), std::string::npos) << hazard.message;
}

TEST(ArchHazard, shuffle_reads_a_lane_outside_the_mask) {
  const uint32_t line = __LINE__ + 2;
  const auto hazard = run(32, [] {
    if (arch::lane_id() < 16) arch::shfl_xor(1.0f, 16, 0x0000ffffu);
  });
  expect(hazard, HazardKind::kAbsentLane, line, "lane 0 reads lane 16");
}

TEST(ArchHazard, shuffle_argument_out_of_range) {
  uint32_t line = __LINE__ + 1;
  auto hazard = run(32, [] { arch::shfl_idx(1.0f, 32); });
  expect(hazard, HazardKind::kUnmodelled, line, "lane argument 32");
  line = __LINE__ + 1;
  hazard = run(32, [] { arch::shfl_down(1.0f, 40); });
  expect(hazard, HazardKind::kUnmodelled, line, "lane argument 40");
}

TEST(ArchHazard, shuffle_with_an_absent_lane) {
  const uint32_t line = __LINE__ + 3;
  const auto hazard = run(32, [] {
    if (arch::lane_id() == 9) return;
    arch::shfl_idx(1.0f, 0);
  });
  expect(hazard, HazardKind::kAbsentLane, line, "lane 9 exited while shfl_idx");
}

TEST(ArchHazard, mma_in_a_divergent_branch) {
  const uint32_t line = __LINE__ + 4;
  const auto hazard = run(32, [] {
    float c[4] = {};
    const uint32_t a[4] = {}, b[2] = {};
    if (arch::lane_id() < 31) arch::mma_m16n8k16<arch::bf16>(c, a, b);
  });
  expect(hazard, HazardKind::kAbsentLane, line, "lane 31 exited while mma");
}

TEST(ArchHazard, ldmatrix_of_an_unwritten_row) {
  const uint32_t line = __LINE__ + 7;
  const auto hazard = run(32, [] {
    auto &shared = arch::shared_storage<Storage>();
    for (uint32_t i = arch::lane_id(); i < 8 * 31; i += 32)
      arch::shared_store(&shared.half[i], uint16_t{1});
    arch::warp_barrier();
    uint32_t r[4];
    arch::ldmatrix_x4(r, &shared.half[8 * arch::lane_id()]);
  });
  expect(hazard, HazardKind::kUninitSharedRead, line, "16 bytes at shared offset 496");
  EXPECT_EQ(hazard.thread, 31u);
}

TEST(ArchHazard, ldmatrix_of_a_misaligned_row) {
  const uint32_t line = __LINE__ + 4;
  const auto hazard = run(32, [] {
    auto &shared = arch::shared_storage<Storage>();
    uint32_t r[1];
    arch::ldmatrix_x1(r, &shared.half[4]);
  });
  expect(hazard, HazardKind::kMisaligned, line, "multiple of 16");
}

TEST(ArchHazard, ldmatrix_of_a_row_in_flight) {
  static arch::Vec4 source[32];
  simt::Stream stream;
  stream.memory.adopt(source, sizeof source, simt::Access::kReadOnly, "source");
  simt::LaunchConfig config;
  config.block = 32;
  config.shared_bytes = sizeof(Storage);
  // NOTE: not inside EXPECT_EQ: all of a macro's arguments count as one line.
  const uint32_t line = __LINE__ + 4;
  const auto body = [] {
    auto &shared = arch::shared_storage<Storage>();
    uint16_t *row = &shared.half[8 * arch::lane_id()];
    arch::cp_async_16(row, source + arch::lane_id(), true);
    arch::cp_async_commit();
    arch::cp_async_wait<1>();
    uint32_t r[4];
    arch::ldmatrix_x4(r, row);
  };
  EXPECT_EQ(simt::launch(&stream, config, body), simt::LaunchStatus::kHazard);
  ASSERT_EQ(stream.hazards.size(), 1u);
  EXPECT_EQ(stream.hazards[0].other.line, line);
  expect(stream.hazards[0], HazardKind::kAsyncInFlightRead, line + 4,
         "before the wait of the async copy");
}

TEST(ArchHazard, atomic_outside_every_buffer) {
  static uint32_t counter = 0;
  const uint32_t line = __LINE__ + 1;
  const auto hazard = run(1, [] { arch::atomic_inc_acq_rel(&counter, 4); });
  expect(hazard, HazardKind::kGlobalOutOfBounds, line, "no registered buffer");
  EXPECT_EQ(counter, 0u);
}

// Every block stores, counts and, when it is the last, loads what the others stored.
TEST(ArchHazard, counter_without_a_barrier) {
  static uint32_t words[3];
  simt::Stream stream;
  stream.memory.adopt(words, sizeof words, simt::Access::kReadWrite, "words");
  simt::LaunchConfig config;
  config.grid_x = 2;
  config.block = 32;
  const uint32_t line = __LINE__ + 2; // line of the store
  const auto body = [](bool barrier) {
    if (arch::lane_id() == 9) arch::global_store(words + arch::block_idx_x(), 7);
    if (barrier) arch::block_barrier();
    arch::fence_gpu();
    bool last = false;
    if (arch::lane_id() == 0) last = arch::atomic_add_acq_rel(words + 2, 1) % 2 == 1;
    if (last) arch::global_load(words + 1 - arch::block_idx_x());
  };
  EXPECT_EQ(simt::launch(&stream, config, [&] { body(true); }), simt::LaunchStatus::kOk);
  EXPECT_EQ(simt::launch(&stream, config, [&] { body(false); }), simt::LaunchStatus::kHazard);
  ASSERT_EQ(stream.hazards.size(), 1u);
  EXPECT_EQ(stream.hazards[0].other.line, line);
  expect(stream.hazards[0], HazardKind::kUnordered, line + 5, "behind block 0, thread 9");
}

// With ASSAY_HAZARDS this file is instrumented like a kernel library.
TEST(ArchHazard, raw_read_of_shared_memory_is_seen) {
#if !defined(ASSAY_HAZARDS)
  GTEST_SKIP() << "built without ASSAY_HAZARDS: raw accesses are not instrumented";
#endif
  const uint32_t line = __LINE__ + 3;
  const auto hazard = run(1, [] {
    // The latest checked operation is the place a raw access is reported after.
    auto &shared = arch::shared_storage<Storage>();
    volatile uint16_t *half = shared.half;
    half[3] = 1;
    half[5] = half[3];
    half[5] = half[4];
  });
  expect(hazard, HazardKind::kUninitSharedRead, line, "raw load at pc");
  EXPECT_NE(hazard.message.find("2 bytes at shared offset 8"), std::string::npos);
}

} // namespace
} // namespace assay::n_simt
