// SPDX-License-Identifier: Apache-2.0
// Several devices at once: each rank writes a word into its peer's window and leaves a flag there,
// waits for the peer's flag, and reads. Or it sends a message that is data and flag in one.
#include <stdexcept>
#include <vector>

#include "kernels/simt/ranks.h"
#include "kernels/simt/tests/fixture.h"

namespace assay::simt {
namespace {

struct Window {
  uint32_t *data, *flag;
};

class RanksTest : public testing::Test {
protected:
  void SetUp() override {
    for (uint32_t r = 0; r < 2; ++r) {
      auto *words = static_cast<uint32_t *>(stream.memory.allocate(
          256, Access::kReadWrite, InitState::kDefined, "window " + std::to_string(r)));
      std::memset(words, 0, 256);
      windows[r] = {words, words + 32};
    }
  }
  static void write(uint32_t *p, uint32_t value, Site site = Site::here()) {
    store(Space::kGlobal, p, value, site);
  }
  static uint32_t read(const uint32_t *p, Site site = Site::here()) {
    return load(Space::kGlobal, p, site);
  }
  static void set_flag(uint32_t *flag, uint32_t epoch, AtomicOrder order = AtomicOrder::kRelease,
                       Scope scope = Scope::kSystem, Site site = Site::here()) {
    atomic_access(flag, 4, AtomicKind::kStore, order, scope, site);
    *flag = epoch;
  }
  static bool await(const uint32_t *flag, uint32_t epoch, AtomicOrder order = AtomicOrder::kAcquire,
                    Scope scope = Scope::kSystem, Site site = Site::here()) {
    return await_word(flag, epoch, order, scope, site);
  }
  // Runs body(rank, epoch) as a launch of one thread, `epochs` times on each of two ranks, under
  // several schedules.
  template <class F>
  void run(uint32_t epochs, F body, uint32_t threads = 1) {
    stream.hazards.clear();
    run_ranks(stream, 2, [&](uint32_t rank) {
      for (uint32_t epoch = 1; epoch <= epochs; ++epoch)
        if (launch(&stream, block_of(threads), [&] { body(rank, epoch); }) != LaunchStatus::kOk)
          return;
    });
  }
  template <class F>
  void under_all_schedules(F f) {
    for (const Order order : {Order::kAscending, Order::kDescending, Order::kSeeded})
      for (uint64_t seed = 0; seed < (order == Order::kSeeded ? 20 : 1); ++seed) {
        stream.schedule.order = order;
        stream.schedule.seed = seed;
        for (const Window &w : windows)
          std::memset(w.data, 0, 256);
        f();
      }
  }
  template <class F>
  std::string expect_unordered(uint32_t epochs, F body, uint32_t threads = 1) {
    std::string text;
    under_all_schedules([&] {
      run(epochs, body, threads);
      ASSERT_FALSE(stream.hazards.empty());
      EXPECT_EQ(stream.hazards[0].kind, HazardKind::kUnordered) << stream.hazards[0].message;
      text = stream.hazards[0].message;
    });
    return text;
  }
  template <class F>
  void expect_clean(uint32_t epochs, F body, uint32_t threads = 1) {
    under_all_schedules([&] {
      run(epochs, body, threads);
      for (const Hazard &hazard : stream.hazards)
        ADD_FAILURE() << hazard.message;
    });
  }

  Stream stream;
  Window windows[2];
};

TEST_F(RanksTest, flags_order_what_peers_wrote) {
  expect_clean(5, [&](uint32_t rank, uint32_t epoch) {
    const Window mine = windows[rank], peer = windows[1 - rank];
    const uint32_t slot = epoch % 2;
    write(peer.data + slot, 100 * rank + epoch);
    set_flag(peer.flag, epoch);
    EXPECT_TRUE(await(mine.flag, epoch));
    EXPECT_EQ(read(mine.data + slot), 100 * (1 - rank) + epoch);
  });
}

TEST_F(RanksTest, relaxed_flag_is_no_release) {
  const std::string text = expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    write(windows[1 - rank].data, 1);
    set_flag(windows[1 - rank].flag, epoch, AtomicOrder::kRelaxed);
    await(windows[rank].flag, epoch);
    read(windows[rank].data);
  });
  EXPECT_NE(text.find("are read, and nothing orders that behind block 0 of another device"),
            std::string::npos)
      << text;
}

TEST_F(RanksTest, relaxed_wait_is_no_acquire) {
  expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    write(windows[1 - rank].data, 1);
    set_flag(windows[1 - rank].flag, epoch);
    await(windows[rank].flag, epoch, AtomicOrder::kRelaxed);
    read(windows[rank].data);
  });
}

TEST_F(RanksTest, fences_of_the_system_around_relaxed_flags) {
  expect_clean(3, [&](uint32_t rank, uint32_t epoch) {
    write(windows[1 - rank].data + epoch, 1);
    fence(Scope::kSystem, Site::here());
    set_flag(windows[1 - rank].flag, epoch, AtomicOrder::kRelaxed);
    await(windows[rank].flag, epoch, AtomicOrder::kRelaxed);
    fence(Scope::kSystem, Site::here());
    read(windows[rank].data + epoch);
  });
}

TEST_F(RanksTest, fence_of_the_device_is_too_narrow) {
  expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    write(windows[1 - rank].data + epoch, 1);
    fence(Scope::kGpu, Site::here());
    set_flag(windows[1 - rank].flag, epoch, AtomicOrder::kRelaxed);
    await(windows[rank].flag, epoch);
    read(windows[rank].data + epoch);
  });
}

TEST_F(RanksTest, flag_of_the_device_is_too_narrow) {
  const std::string text = expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    write(windows[1 - rank].data, 1);
    set_flag(windows[1 - rank].flag, epoch, AtomicOrder::kRelease, Scope::kGpu);
    await(windows[rank].flag, epoch);
    read(windows[rank].data);
  });
  EXPECT_NE(text.find("changed atomically at the scope of a device"), std::string::npos) << text;
}

TEST_F(RanksTest, flag_that_is_a_plain_store) {
  expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    write(windows[1 - rank].data, 1);
    write(windows[1 - rank].flag, epoch);
    await(windows[rank].flag, epoch);
    read(windows[rank].data);
  });
}

TEST_F(RanksTest, written_behind_the_flag) {
  expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    set_flag(windows[1 - rank].flag, epoch);
    write(windows[1 - rank].data, 1);
    await(windows[rank].flag, epoch);
    read(windows[rank].data);
  });
}

// With one slot the next epoch overwrites what the peer may still be reading. Where the peer is so
// late that it finds the next flag in place of this one, all is ordered, and it reads the next
// value.
TEST_F(RanksTest, slot_used_again_before_its_reader_is_done) {
  uint32_t ordered = 0;
  under_all_schedules([&] {
    bool too_new = false;
    run(2, [&](uint32_t rank, uint32_t epoch) {
      write(windows[1 - rank].data, epoch);
      set_flag(windows[1 - rank].flag, epoch);
      await(windows[rank].flag, epoch);
      too_new |= read(windows[rank].data) != epoch;
    });
    EXPECT_NE(stream.hazards.empty(), !too_new);
    if (stream.hazards.empty()) return void(++ordered);
    const std::string &text = stream.hazards[0].message;
    EXPECT_NE(text.find("are written, and nothing orders that behind"), std::string::npos) << text;
    EXPECT_NE(text.find("by which they were read"), std::string::npos) << text;
  });
  EXPECT_LT(ordered, 10u);
}

// A store begins another release sequence: whoever acquires it knows nothing of the one before.
TEST_F(RanksTest, store_over_a_released_flag) {
  expect_unordered(1, [&](uint32_t rank, uint32_t) {
    if (rank == 0) {
      write(windows[1].data, 1);
      set_flag(windows[1].flag, 1);
      return;
    }
    await(windows[1].flag, 1, AtomicOrder::kRelaxed);
    set_flag(windows[1].flag, 2, AtomicOrder::kRelaxed);
    await(windows[1].flag, 2);
    read(windows[1].data);
  });
}

// What a device releases to itself stays there, also when another device changes the word.
TEST_F(RanksTest, flag_of_one_device_counted_on_by_another) {
  const auto count = [&](uint32_t *word, AtomicOrder order, Scope scope, Site site = Site::here()) {
    atomic_access(word, 4, AtomicKind::kReadModifyWrite, order, scope, site);
    ++*word;
  };
  for (const Scope scope : {Scope::kGpu, Scope::kSystem}) {
    const auto body = [&, scope](uint32_t rank, uint32_t) {
      if (rank == 0) {
        write(windows[1].data, 1);
        fence(scope, Site::here());
        count(windows[1].flag, AtomicOrder::kRelaxed, Scope::kSystem);
        return;
      }
      await(windows[1].flag, 1, AtomicOrder::kRelaxed);
      count(windows[1].flag, AtomicOrder::kRelaxed, Scope::kSystem);
      atomic_access(windows[1].flag, 4, AtomicKind::kLoad, AtomicOrder::kAcquire, Scope::kSystem,
                    Site::here());
      read(windows[1].data);
    };
    if (scope == Scope::kSystem)
      expect_clean(1, body);
    else
      expect_unordered(1, body);
  }
}

// Two threads read; the flag tells of one of them.
TEST_F(RanksTest, every_reader_counts) {
  const auto body = [&](bool meet) {
    return [&, meet](uint32_t rank, uint32_t) {
      if (rank == 0) {
        read(windows[0].data);
        if (meet) warp_barrier(3);
        if (me() == 1) set_flag(windows[1].flag, 1);
      } else if (me() == 0) {
        await(windows[1].flag, 1);
        write(windows[0].data, 1);
      }
    };
  };
  expect_clean(1, body(true), 2);
  stream.schedule.order = Order::kAscending;
  for (const Window &w : windows)
    std::memset(w.data, 0, 256);
  run(1, body(false), 2);
  ASSERT_FALSE(stream.hazards.empty());
  EXPECT_NE(stream.hazards[0].message.find("thread 0, by which they were read"), std::string::npos)
      << stream.hazards[0].message;
}

TEST_F(RanksTest, lanes_release_through_the_barrier_of_their_warp) {
  const auto body = [&](bool meets) {
    return [&, meets](uint32_t rank, uint32_t epoch) {
      write(windows[1 - rank].data + me(), 1);
      if (meets) warp_barrier(~0u);
      if (me() == 0) set_flag(windows[1 - rank].flag, epoch);
      if (me() == 0) await(windows[rank].flag, epoch);
      warp_barrier(~0u);
      read(windows[rank].data + me());
    };
  };
  expect_clean(1, body(true), 32);
  expect_unordered(1, body(false), 32);
}

TEST_F(RanksTest, host_code_orders_the_launches_of_a_rank) {
  expect_clean(1, [&](uint32_t rank, uint32_t) { write(windows[rank].data, rank); });
  under_all_schedules([&] {
    stream.hazards.clear();
    run_ranks(stream, 2, [&](uint32_t rank) {
      launch(&stream, block_of(1), [&] { write(windows[rank].data + 1, 7); });
      launch(&stream, block_of(1), [&] { set_flag(windows[1 - rank].flag, 1); });
      launch(&stream, block_of(1), [&] { await(windows[rank].flag, 1); });
      launch(&stream, block_of(1), [&] { EXPECT_EQ(read(windows[1 - rank].data + 1), 7u); });
    });
    for (const Hazard &hazard : stream.hazards)
      ADD_FAILURE() << hazard.message;
  });
}

TEST_F(RanksTest, a_dead_peer_ends_the_wait) {
  under_all_schedules([&] {
    bool came = true;
    run_ranks(stream, 2, [&](uint32_t rank) {
      if (rank == 1) return;
      EXPECT_EQ(launch(&stream, block_of(1), [&] { came = await(windows[0].flag, 1); }),
                LaunchStatus::kOk);
    });
    EXPECT_FALSE(came);
  });
}

TEST_F(RanksTest, a_hazard_ends_its_launch_alone) {
  stream.hazards.clear();
  LaunchStatus status[2];
  bool came = true;
  run_ranks(stream, 2, [&](uint32_t rank) {
    status[rank] = launch(&stream, block_of(1), [&] {
      if (rank == 1) read(windows[0].data + 1000);
      came = await(windows[rank].flag, 1);
    });
  });
  EXPECT_EQ(status[0], LaunchStatus::kOk);
  EXPECT_EQ(status[1], LaunchStatus::kHazard);
  EXPECT_FALSE(came);
  ASSERT_EQ(stream.hazards.size(), 1u);
  EXPECT_EQ(stream.hazards[0].kind, HazardKind::kGlobalOutOfBounds);
}

// More blocks than may begin at once: each waits for the block of its number alone.
TEST_F(RanksTest, blocks_wait_for_those_of_their_number) {
  under_all_schedules([&] {
    stream.hazards.clear();
    uint32_t passed = 0;
    run_ranks(stream, 2, [&](uint32_t rank) {
      launch(&stream, block_of(1, 0, 12), [&] {
        const uint32_t b = thread_view.block_idx[0];
        set_flag(windows[1 - rank].flag + b, 1);
        passed += await(windows[rank].flag + b, 1);
      });
    });
    EXPECT_EQ(passed, 24u);
    EXPECT_TRUE(stream.hazards.empty());
  });
}

TEST_F(RanksTest, counted_with_wrap) {
  run_ranks(stream, 2, [&](uint32_t rank) {
    launch(&stream, block_of(1), [&] {
      set_flag(windows[1 - rank].flag, 1);
      EXPECT_TRUE(await(windows[rank].flag, 0xffffffff));
    });
  });
}

TEST_F(RanksTest, outside_of_ranks_nobody_else_writes) {
  launch(&stream, block_of(1), [&] {
    EXPECT_FALSE(await(windows[0].flag, 1));
    set_flag(windows[0].flag, 1);
    EXPECT_TRUE(await(windows[0].flag, 1));
  });
}

TEST_F(RanksTest, another_thread_of_the_block_may_write_the_word) {
  launch(&stream, block_of(2), [&] {
    if (me() == 0)
      EXPECT_TRUE(await(windows[0].flag, 1, AtomicOrder::kAcquire, Scope::kGpu));
    else
      set_flag(windows[0].flag, 1, AtomicOrder::kRelease, Scope::kGpu);
  });
}

// A message carries its epoch: nothing is released or acquired, and what is in it is right.
struct Message {
  uint32_t data[3], epoch;
};

void send(uint32_t *to, uint32_t value, uint32_t epoch, Scope scope = Scope::kSystem,
          Site site = Site::here()) {
  atomic_access(to, 16, AtomicKind::kStore, AtomicOrder::kRelaxed, scope, site);
  *reinterpret_cast<Message *>(to) = {{value, value, value}, epoch};
}
bool take(const uint32_t *from, uint32_t epoch, Scope scope = Scope::kSystem,
          Site site = Site::here()) {
  return await_message(from, 16, from + 3, epoch, scope, site);
}
/// The words of an epoch, in one of two halves.
uint32_t *half(const Window &window, uint32_t epoch) { return window.data + epoch % 2 * 4; }

TEST_F(RanksTest, messages_in_two_halves_need_no_flag) {
  expect_clean(6, [&](uint32_t rank, uint32_t epoch) {
    send(half(windows[1 - rank], epoch), 100 * rank + epoch, epoch);
    ASSERT_TRUE(take(half(windows[rank], epoch), epoch));
    EXPECT_EQ(*half(windows[rank], epoch), 100 * (1 - rank) + epoch);
  });
}

// Either the sender finds that its message was read, and by nobody behind whom it stands, or the
// reader finds the next message in place of its own, and gives up.
TEST_F(RanksTest, message_overwritten_before_it_is_taken) {
  under_all_schedules([&] {
    bool came = true;
    run(3, [&](uint32_t rank, uint32_t epoch) {
      send(windows[1 - rank].data, epoch, epoch);
      came &= take(windows[rank].data, epoch);
    });
    EXPECT_TRUE(!stream.hazards.empty() || !came);
    if (!stream.hazards.empty())
      EXPECT_NE(stream.hazards[0].message.find("by which they were read atomically"),
                std::string::npos)
          << stream.hazards[0].message;
  });
}

// Within one launch nothing stands between the reader and its next message.
TEST_F(RanksTest, halves_need_a_launch_between_them) {
  bool seen = false;
  under_all_schedules([&] {
    run(1, [&](uint32_t rank, uint32_t) {
      for (uint32_t epoch = 1; epoch <= 4; ++epoch) {
        send(half(windows[1 - rank], epoch), epoch, epoch);
        take(half(windows[rank], epoch), epoch);
      }
    });
    seen |= !stream.hazards.empty();
  });
  EXPECT_TRUE(seen);
}

TEST_F(RanksTest, message_of_the_device) {
  expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    send(windows[1 - rank].data, 1, epoch, Scope::kGpu);
    take(windows[rank].data, epoch);
  });
  expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    send(windows[1 - rank].data, 1, epoch);
    take(windows[rank].data, epoch, Scope::kGpu);
  });
}

TEST_F(RanksTest, message_read_by_a_plain_load) {
  expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    send(windows[1 - rank].data, 1, epoch);
    await(windows[rank].data + 3, epoch, AtomicOrder::kRelaxed);
    read(windows[rank].data);
  });
}

// Two stores are not one: between them a reader may find the epoch beside old data.
TEST_F(RanksTest, message_in_two_stores) {
  const std::string text = expect_unordered(1, [&](uint32_t rank, uint32_t epoch) {
    uint32_t *const to = windows[1 - rank].data;
    atomic_access(to, 8, AtomicKind::kStore, AtomicOrder::kRelaxed, Scope::kSystem, Site::here());
    atomic_access(to + 2, 8, AtomicKind::kStore, AtomicOrder::kRelaxed, Scope::kSystem,
                  Site::here());
    to[3] = epoch;
    take(windows[rank].data, epoch);
  });
  EXPECT_NE(text.find("16 bytes"), std::string::npos) << text;
}

// What a relaxed message stands for is what the launches in front of its sender's did.
TEST_F(RanksTest, message_orders_launches) {
  const auto body = [&](bool in_front) {
    return [&, in_front](uint32_t rank) {
      const auto write_data = [&] { write(windows[1 - rank].data + 48, 7); };
      if (in_front) launch(&stream, block_of(1), write_data);
      launch(&stream, block_of(1), [&] {
        if (!in_front) write_data();
        send(windows[1 - rank].data, 1, 1);
        take(windows[rank].data, 1);
      });
      launch(&stream, block_of(1), [&] { read(windows[rank].data + 48); });
    };
  };
  for (const bool in_front : {true, false})
    under_all_schedules([&] {
      stream.hazards.clear();
      run_ranks(stream, 2, body(in_front));
      EXPECT_EQ(stream.hazards.empty(), in_front);
    });
}

TEST_F(RanksTest, what_a_body_throws_is_thrown) {
  bool other = false;
  EXPECT_THROW(run_ranks(stream, 2,
                         [&](uint32_t rank) {
                           if (rank == 0) throw std::runtime_error("of a rank");
                           other = true;
                         }),
               std::runtime_error);
  EXPECT_TRUE(other);
  EXPECT_THROW(run_ranks(stream, 9, [](uint32_t) {}), std::logic_error);
  EXPECT_THROW(run_ranks(stream, 1, [&](uint32_t) { run_ranks(stream, 1, [](uint32_t) {}); }),
               std::logic_error);
}

} // namespace
} // namespace assay::simt
