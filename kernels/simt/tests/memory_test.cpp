// SPDX-License-Identifier: Apache-2.0
// The registry of buffers: lookup, red zones, counters.
#include "kernels/simt/asan.h"
#include "kernels/simt/tests/fixture.h"

namespace assay::simt {
namespace {

std::byte *make(Memory &memory, size_t bytes, const char *tag, size_t alignment = 256) {
  return static_cast<std::byte *>(
      memory.allocate(bytes, Access::kReadWrite, InitState::kDefined, tag, alignment));
}

TEST(Memory, looks_up_by_any_address) {
  Memory memory;
  std::vector<std::byte *> buffers;
  for (size_t i = 0; i < 50; ++i)
    buffers.push_back(make(memory, 10 * i, "b"));
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(memory.id_of(buffers[i]), static_cast<int>(i));
    if (i != 0) {
      EXPECT_EQ(memory.id_of(buffers[i] + 10 * i - 1), static_cast<int>(i));
      EXPECT_EQ(memory.id_of(buffers[i] + 10 * i), -1);
    }
    EXPECT_EQ(memory.id_of(buffers[i] - 1), -1);
    EXPECT_EQ(memory.info(static_cast<int>(i)).bytes, 10 * i);
  }
  memory.release(buffers[7]);
  EXPECT_EQ(memory.id_of(buffers[7]), -1);
  EXPECT_THROW(memory.info(7), std::out_of_range);
  EXPECT_EQ(memory.buffer_count(), 49u);
}

TEST(Memory, alignment_is_kept) {
  Memory memory;
  for (size_t alignment : {16, 128, 256, 4096})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(make(memory, 33, "b", alignment)) % alignment, 0u);
}

// Writes that bypass every check, as a miscompiled or foreign store would.
#if ASSAY_ASAN
__attribute__((no_sanitize("address")))
#endif
__attribute__((noinline)) void
poke(std::byte *p) {
  *const_cast<volatile std::byte *>(p) = std::byte{0x11};
}

TEST(Memory, a_buffer_begins_behind_a_multiple_of_its_alignment) {
  Memory memory;
  for (size_t offset : {4, 16, 112, 252}) {
    auto *data = static_cast<std::byte *>(
        memory.allocate(33, Access::kReadWrite, InitState::kDefined, "b", 256, offset));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 256, offset);
    EXPECT_EQ(memory.id_of(data - 1), -1);
    EXPECT_EQ(memory.id_of(data + 33), -1);
    poke(data - 1);
    poke(data + 33);
    std::vector<Hazard> hazards;
    memory.check_red_zones(hazards);
    EXPECT_EQ(hazards.size(), 1u) << offset;
  }
}

TEST(Memory, undefined_buffers_hold_nan) {
  Memory memory;
  auto *p =
      static_cast<uint8_t *>(memory.allocate(64, Access::kReadWrite, InitState::kUndefined, "out"));
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(p[i], 0xFF);
}

TEST(Memory, red_zones_report_damage_once) {
  Memory memory;
  std::byte *low = make(memory, 100, "low"), *high = make(memory, 50, "high");
  std::vector<Hazard> hazards;
  memory.check_red_zones(hazards);
  EXPECT_TRUE(hazards.empty());
  poke(low + 100);
  poke(high - 256);
  memory.check_red_zones(hazards);
  ASSERT_EQ(hazards.size(), 2u);
  const bool low_first = hazards[0].message.find("'low'") != std::string::npos;
  const Hazard &of_low = hazards[low_first ? 0 : 1], &of_high = hazards[low_first ? 1 : 0];
  EXPECT_EQ(of_low.kind, HazardKind::kRedZoneWritten);
  EXPECT_NE(of_low.message.find("0 bytes past the end of buffer 'low'"), std::string::npos);
  EXPECT_NE(of_high.message.find("256 bytes before buffer 'high'"), std::string::npos);
  hazards.clear();
  memory.check_red_zones(hazards);
  EXPECT_TRUE(hazards.empty());
}

TEST(Memory, shared_red_zone_is_checked_after_each_block) {
  Stream stream;
  EXPECT_EQ(launch(&stream, block_of(1, 64, 3),
                   [] {
                     if (thread_view.block_idx[0] == 1)
                       poke(reinterpret_cast<std::byte *>(shared_words(16)) + 64);
                   }),
            LaunchStatus::kHazard);
  ASSERT_EQ(stream.hazards.size(), 1u);
  EXPECT_EQ(stream.hazards[0].kind, HazardKind::kRedZoneWritten);
  EXPECT_EQ(stream.hazards[0].block, 1u);
  EXPECT_EQ(launch(&stream, block_of(1, 64), [] {}), LaunchStatus::kOk);
}

#if ASSAY_ASAN
TEST(MemoryDeathTest, asan_sees_the_red_zones) {
  Memory memory;
  volatile std::byte *p = make(memory, 33, "odd");
  EXPECT_DEATH(p[33] = std::byte{1}, "AddressSanitizer");
  EXPECT_DEATH(
      launch(nullptr, block_of(1, 33),
             [] { static_cast<volatile char *>(shared_base(33, 16, Site::here()))[33] = 1; }),
      "AddressSanitizer");
}
#endif

TEST(Memory, counts_bytes_and_reads_per_byte) {
  Stream stream;
  auto *in = reinterpret_cast<uint32_t *>(make(stream.memory, 64, "in"));
  auto *out = reinterpret_cast<uint32_t *>(make(stream.memory, 64, "out"));
  stream.memory.track_reads(in);
  EXPECT_TRUE(stream.memory.read_counts(out).empty());
  EXPECT_EQ(launch(&stream, block_of(8),
                   [&] { store(Space::kGlobal, out + me(), load(Space::kGlobal, in + me() / 2)); }),
            LaunchStatus::kOk);
  EXPECT_EQ(stream.memory.info(stream.memory.id_of(in)).bytes_read, 32u);
  EXPECT_EQ(stream.memory.info(stream.memory.id_of(out)).bytes_written, 32u);
  const auto counts = stream.memory.read_counts(in);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(counts[i], i < 16 ? 2 : 0) << i;
  EXPECT_EQ(stream.counters.global_load_requests, 8u);
  EXPECT_EQ(stream.counters.global_load_bytes, 32u);
  EXPECT_EQ(stream.counters.global_store_bytes, 32u);
  stream.memory.reset_counters();
  EXPECT_EQ(stream.memory.info(stream.memory.id_of(in)).bytes_read, 0u);
  EXPECT_EQ(counts[0], 0);
}

TEST(Memory, overlap_is_refused) {
  Memory memory;
  uint32_t words[4];
  memory.adopt(words, 16, Access::kReadOnly, "a");
  EXPECT_THROW(memory.adopt(words + 3, 8, Access::kReadOnly, "b"), std::invalid_argument);
  EXPECT_THROW(memory.release(words + 4), std::invalid_argument);
}

} // namespace
} // namespace assay::simt
