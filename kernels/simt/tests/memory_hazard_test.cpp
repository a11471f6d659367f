// SPDX-License-Identifier: Apache-2.0
// Every wrong access to shared and global memory, with the message that names the line.
#include "kernels/simt/tests/fixture.h"

namespace assay::simt {
namespace {

using MemoryHazard = HazardTest;

// ---- shared ----

TEST_F(MemoryHazard, shared_read_before_write) {
  const uint32_t line = __LINE__ + 5;
  const Hazard hazard =
      expect(HazardKind::kUninitSharedRead, __FILE__, line, block_of(32, 256), [] {
        uint32_t *words = shared_words(64);
        store(Space::kShared, words + 2 * me(), 1);
        load(Space::kShared, words + 2 * me() + 1);
      });
  expect_text(hazard, "4 bytes at shared offset 4");
}

TEST_F(MemoryHazard, shared_contents_do_not_survive_a_block) {
  const uint32_t line = __LINE__ + 3;
  expect(HazardKind::kUninitSharedRead, __FILE__, line, block_of(1, 4, 2), [] {
    if (thread_view.block_idx[0] == 0) return store(Space::kShared, shared_words(1), 7);
    load(Space::kShared, shared_words(1));
  });
  EXPECT_EQ(stream.hazards.back().block, 1u);
}

TEST_F(MemoryHazard, shared_out_of_bounds) {
  Hazard hazard = expect(HazardKind::kSharedOutOfBounds, __FILE__, __LINE__ + 1, block_of(32, 100),
                         [] { store(Space::kShared, shared_words(25) + me(), 1); });
  expect_text(hazard, "shared offset 100 of 100");
  EXPECT_EQ(hazard.thread, 25u);
  hazard = expect(HazardKind::kSharedOutOfBounds, __FILE__, __LINE__ + 1, block_of(1, 100),
                  [] { store(Space::kShared, shared_words(25) - 1, 1); });
  expect_text(hazard, "shared offset -4");
  hazard = expect(HazardKind::kSharedOutOfBounds, __FILE__, __LINE__ + 1, block_of(1, 100),
                  [] { shared_words(26); });
  expect_text(hazard, "104 bytes in a launch with 100");
}

TEST_F(MemoryHazard, misaligned) {
  expect(HazardKind::kMisaligned, __FILE__, __LINE__ + 1, block_of(1, 64), [] {
    access(Space::kShared, AccessKind::kWrite, shared_words(16) + 1, 16, 16, Site::here());
  });
}

// ---- async copies ----

class AsyncHazard : public HazardTest {
protected:
  AsyncHazard() {
    source = static_cast<uint32_t *>(
        stream.memory.allocate(1024, Access::kReadOnly, InitState::kDefined, "source"));
    for (uint32_t i = 0; i < 256; ++i)
      source[i] = i;
  }
  void copy(uint32_t *words, Site site = Site::here()) const {
    async_copy(words + 4 * me(), source + 4 * me(), 16, true, site);
  }
  uint32_t *source;
};

TEST_F(AsyncHazard, read_before_the_wait) {
  for (const CopyCompletion when : {CopyCompletion::kAtIssue, CopyCompletion::kAtWait}) {
    stream.schedule.copies = when;
    const uint32_t line = __LINE__ + 4;
    const Hazard hazard =
        expect(HazardKind::kAsyncInFlightRead, __FILE__, line + 2, block_of(4, 256), [&] {
          uint32_t *words = shared_words(64);
          copy(words);
          async_commit();
          load(Space::kShared, words + 4 * me());
        });
    EXPECT_EQ(hazard.other.line, line);
    expect_text(hazard, "memory_hazard_test.cpp:" + std::to_string(line));
  }
}

TEST_F(AsyncHazard, wait_that_leaves_the_group_pending) {
  expect(HazardKind::kAsyncInFlightRead, __FILE__, __LINE__ + 5, block_of(4, 256), [&] {
    uint32_t *words = shared_words(64);
    copy(words);
    async_commit();
    async_wait(1, Site::here());
    load(Space::kShared, words + 4 * me());
  });
}

TEST_F(AsyncHazard, missing_commit) {
  expect(HazardKind::kAsyncInFlightRead, __FILE__, __LINE__ + 4, block_of(4, 256), [&] {
    uint32_t *words = shared_words(64);
    copy(words);
    async_wait(0, Site::here());
    load(Space::kShared, words + 4 * me());
  });
}

TEST_F(AsyncHazard, write_under_a_copy) {
  const uint32_t line = __LINE__ + 4;
  const Hazard hazard =
      expect(HazardKind::kAsyncInFlightWrite, __FILE__, line + 1, block_of(1, 256), [&] {
        uint32_t *words = shared_words(64);
        copy(words);
        store(Space::kShared, words + 3, 1);
      });
  EXPECT_EQ(hazard.other.line, line);
}

TEST_F(AsyncHazard, other_threads_copy_is_in_flight) {
  // Thread 0 waits for its own copies only; thread 1's has not been waited for.
  expect(HazardKind::kAsyncInFlightRead, __FILE__, __LINE__ + 6, block_of(2, 256), [&] {
    uint32_t *words = shared_words(64);
    copy(words);
    async_commit();
    if (me() == 0) async_wait(0, Site::here());
    sync_block();
    if (me() == 0) load(Space::kShared, words + 4);
    sync_block();
    async_wait(0, Site::here());
  });
}

TEST_F(AsyncHazard, exit_before_the_wait) {
  const uint32_t line = __LINE__ + 2;
  const Hazard hazard = expect(HazardKind::kAsyncInFlightRead, __FILE__, line, block_of(4, 256),
                               [&] { copy(shared_words(64)); });
  EXPECT_EQ(hazard.other.line, line);
}

TEST_F(AsyncHazard, used_well_under_every_completion) {
  for (const CopyCompletion when :
       {CopyCompletion::kAtIssue, CopyCompletion::kAtWait, CopyCompletion::kSeeded}) {
    stream.schedule.copies = when;
    bool right = true;
    EXPECT_EQ(launch(&stream, block_of(8, 256),
                     [&] {
                       uint32_t *words = shared_words(64);
                       copy(words);
                       async_commit();
                       async_copy(words + 32 + 4 * me(), nullptr, 16, false, Site::here());
                       async_commit();
                       async_wait(1, Site::here());
                       sync_block();
                       right = right && load(Space::kShared, words + 31 - me()) == 31 - me();
                       async_wait(0, Site::here());
                       right = right && load(Space::kShared, words + 32 + 4 * me()) == 0;
                     }),
              LaunchStatus::kOk);
    EXPECT_TRUE(right);
    EXPECT_TRUE(stream.hazards.empty());
  }
}

// Looks at the destination behind the executor's back, between issue and wait.
TEST_F(AsyncHazard, bytes_land_when_the_schedule_says) {
  const auto landed_early = [&](CopyCompletion when, uint64_t seed) {
    stream.schedule = {Order::kAscending, when, seed};
    uint32_t early = 0;
    EXPECT_EQ(launch(&stream, block_of(16, 256),
                     [&] {
                       uint32_t *words = shared_words(64);
                       copy(words);
                       const uint32_t seen = words[4 * me() + 1];
                       EXPECT_TRUE(seen == 4 * me() + 1 || seen == 0xffffffffu) << seen;
                       early += seen != 0xffffffffu;
                       async_commit();
                       async_wait(0, Site::here());
                       EXPECT_EQ(words[4 * me() + 1], 4 * me() + 1);
                     }),
              LaunchStatus::kOk);
    return early;
  };
  EXPECT_EQ(landed_early(CopyCompletion::kAtIssue, 0), 16u);
  EXPECT_EQ(landed_early(CopyCompletion::kAtWait, 0), 0u);
  uint32_t early = 0;
  for (uint64_t seed = 0; seed < 20; ++seed)
    early += landed_early(CopyCompletion::kSeeded, seed);
  EXPECT_GT(early, 100u);
  EXPECT_LT(early, 220u);
  EXPECT_EQ(landed_early(CopyCompletion::kSeeded, 3), landed_early(CopyCompletion::kSeeded, 3));
}

TEST_F(AsyncHazard, source_out_of_bounds) {
  const Hazard hazard =
      expect(HazardKind::kGlobalOutOfBounds, __FILE__, __LINE__ + 1, block_of(1, 256),
             [&] { async_copy(shared_words(64), source + 256, 16, true, Site::here()); });
  expect_text(hazard, "offset 1024 of buffer 'source' (1024 bytes)");
}

// ---- global ----

TEST_F(MemoryHazard, global_out_of_bounds) {
  auto *words = static_cast<uint32_t *>(
      stream.memory.allocate(40, Access::kReadWrite, InitState::kDefined, "k_cache"));
  Hazard hazard = expect(HazardKind::kGlobalOutOfBounds, __FILE__, __LINE__ + 1, block_of(32),
                         [&] { load(Space::kGlobal, words + me()); });
  EXPECT_EQ(hazard.thread, 10u);
  expect_text(hazard, "4 bytes at offset 40 of buffer 'k_cache' (40 bytes)");
  hazard = expect(HazardKind::kGlobalOutOfBounds, __FILE__, __LINE__ + 1, block_of(1),
                  [&] { store(Space::kGlobal, words - 2, 1); });
  expect_text(hazard, "starting 8 before buffer 'k_cache'");
  hazard = expect(HazardKind::kGlobalOutOfBounds, __FILE__, __LINE__ + 2, block_of(1), [&] {
    // Half inside.
    access(Space::kGlobal, AccessKind::kRead, words + 8, 16, 16, Site::here());
  });
}

TEST_F(MemoryHazard, unregistered_memory) {
  uint32_t word = 0;
  expect(HazardKind::kGlobalOutOfBounds, __FILE__, __LINE__ + 1, block_of(1),
         [&] { store(Space::kGlobal, &word, 1); });
  EXPECT_EQ(word, 0u);
  stream.strict_global = false;
  expect_clean(block_of(1), [&] { store(Space::kGlobal, &word, 1); });
  EXPECT_EQ(word, 1u);
  stream.strict_global = true;
  stream.memory.adopt(&word, 4, Access::kReadWrite, "word");
  expect_clean(block_of(1), [&] { store(Space::kGlobal, &word, 2); });
}

TEST_F(MemoryHazard, shared_address_as_global) {
  expect(HazardKind::kGlobalOutOfBounds, __FILE__, __LINE__ + 1, block_of(1, 16),
         [&] { store(Space::kGlobal, shared_words(1), 1); });
}

TEST_F(MemoryHazard, read_only_buffer_written) {
  auto *words = static_cast<uint32_t *>(
      stream.memory.allocate(64, Access::kReadOnly, InitState::kDefined, "page_table"));
  const Hazard hazard = expect(HazardKind::kReadOnlyWritten, __FILE__, __LINE__ + 1, block_of(1),
                               [&] { store(Space::kGlobal, words + 3, 1); });
  expect_text(hazard, "4 bytes at offset 12 of buffer 'page_table', which is read-only");
}

TEST_F(MemoryHazard, undefined_workspace_read) {
  auto *words = static_cast<uint32_t *>(
      stream.memory.allocate(64, Access::kReadWrite, InitState::kUndefined, "workspace"));
  const Hazard hazard =
      expect(HazardKind::kUninitGlobalRead, __FILE__, __LINE__ + 2, block_of(1), [&] {
        store(Space::kGlobal, words, 1), load(Space::kGlobal, words);
        load(Space::kGlobal, words + 1);
      });
  expect_text(hazard, "4 bytes at offset 4 of buffer 'workspace', never written");
  stream.memory.mark_defined(words + 1, 4);
  expect_clean(block_of(1), [&] { load(Space::kGlobal, words + 1); });
  stream.memory.mark_undefined(words + 1, 4);
  expect(HazardKind::kUninitGlobalRead, __FILE__, __LINE__ + 1, block_of(1),
         [&] { load(Space::kGlobal, words + 1); });
}

// ---- raw accesses, as delivered by compiler instrumentation ----

extern "C" {
void __sanitizer_cov_load4(const void *address);
void __sanitizer_cov_store4(const void *address);
}

TEST_F(MemoryHazard, raw_access_to_shared_memory) {
  const Hazard hazard =
      expect(HazardKind::kUninitSharedRead, __FILE__, __LINE__ + 3, block_of(1, 64), [] {
        uint32_t *words = shared_words(16);
        __sanitizer_cov_store4(words + 1), __sanitizer_cov_load4(words + 1);
        store(Space::kShared, words + 3, 0), __sanitizer_cov_load4(words + 2);
      });
  expect_text(hazard, "raw load");
  const Hazard outside =
      expect(HazardKind::kSharedOutOfBounds, __FILE__, __LINE__ + 1, block_of(1, 64),
             [] { __sanitizer_cov_store4(shared_words(16) + 16); });
  expect_text(outside, "raw store");
}

} // namespace
} // namespace assay::simt
