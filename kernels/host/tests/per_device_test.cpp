// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/per_device.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace assay {
namespace {

TEST(PerDevice, each_device_is_remembered_for_itself) {
  DoneOnDevices done;
  for (const int device : {0, 5, 63}) {
    EXPECT_FALSE(done.contains(device));
    done.add(device);
    EXPECT_TRUE(done.contains(device));
  }
  for (int device = 0; device < kKnownDevices; ++device)
    EXPECT_EQ(done.contains(device), device == 0 || device == 5 || device == 63) << device;
}

// Whatever is done on them is done again by every call, not left out.
TEST(PerDevice, ordinals_beyond_the_known_are_never_done) {
  DoneOnDevices done;
  for (const int device : {-1, 64, 65, 128, 1 << 20}) {
    done.add(device);
    EXPECT_FALSE(done.contains(device)) << device;
  }
  for (int device = 0; device < kKnownDevices; ++device)
    EXPECT_FALSE(done.contains(device)) << device;
}

TEST(PerDevice, threads_lose_no_device) {
  DoneOnDevices done;
  std::vector<std::thread> threads;
  for (int first = 0; first < 4; ++first)
    threads.emplace_back([&done, first] {
      for (int device = first; device < kKnownDevices; device += 4)
        done.add(device);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int device = 0; device < kKnownDevices; ++device)
    EXPECT_TRUE(done.contains(device)) << device;
}

} // namespace
} // namespace assay
