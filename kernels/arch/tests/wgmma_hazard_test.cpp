// SPDX-License-Identifier: Apache-2.0
// Wrong uses of mbarriers and matrix operations on simt: each is stopped on the first schedule, and
// the message names the line.
#include <gtest/gtest.h>

#include <functional>

#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/simt/launch.h"

namespace assay::n_simt {
namespace {

using simt::HazardKind;

struct Tiles {
  alignas(1024) arch::Vec4 a[512], b[512];
  arch::Mbarrier barrier;
};

/// What a kernel of one warpgroup leaves out or does wrong.
struct Mistakes {
  bool no_proxy_fence = false, no_fence = false, no_commit = false, no_wait = false;
  bool early_write = false, early_copy_read = false, one_warp_less = false;
};

void kernel(const Mistakes &wrong, const arch::Vec4 *source) {
  Tiles &shared = arch::shared_storage<Tiles>();
  const auto thread = static_cast<int>(arch::thread_idx());
  for (int i = thread; i < 512; i += 128) {
    arch::shared_store(&shared.a[i], arch::Vec4{});
    arch::cp_async_16(&shared.b[i], source + i, true);
  }
  arch::cp_async_commit();
  if (!wrong.early_copy_read) arch::cp_async_wait<0>();
  if (!wrong.no_proxy_fence) arch::fence_async_proxy();
  arch::block_barrier();
  if (wrong.one_warp_less && arch::warp_id() == 3) return;
  float c[32] = {};
  if (!wrong.no_fence) arch::wgmma_fence(c);
  arch::wgmma_m64k16<arch::bf16>(c, arch::KMajorMatrix(shared.a), arch::KMajorMatrix(shared.b),
                                 false);
  if (!wrong.no_commit) arch::wgmma_commit();
  if (wrong.early_write) arch::shared_store(&shared.b[thread], arch::Vec4{});
  if (!wrong.no_wait) arch::wgmma_wait<0>(c);
}

simt::Hazard run(const std::function<void(const arch::Vec4 *)> &body, uint32_t threads = 128) {
  simt::Stream stream;
  auto *source = static_cast<arch::Vec4 *>(stream.memory.allocate(
      512 * sizeof(arch::Vec4), simt::Access::kReadOnly, simt::InitState::kDefined, "source"));
  simt::LaunchConfig config;
  config.block = threads;
  config.shared_bytes = sizeof(Tiles);
  simt::launch(&stream, config, [&] { body(source); });
  return stream.hazards.empty() ? simt::Hazard{} : stream.hazards.back();
}

TEST(WgmmaHazard, a_sound_kernel_has_none) {
  const auto hazard = run([](const arch::Vec4 *source) { kernel({}, source); });
  EXPECT_EQ(hazard.message, "");
}

TEST(WgmmaHazard, each_mistake_is_reported) {
  struct {
    Mistakes wrong;
    HazardKind kind;
    const char *text;
  } cases[] = {
      {{.no_proxy_fence = true}, HazardKind::kMissingFence, "without fence_async_proxy since"},
      {{.no_fence = true}, HazardKind::kMissingFence, "without wgmma_fence"},
      {{.no_commit = true},
       HazardKind::kAsyncInFlightRead,
       "a wait names the result of the matrix operation issued at"},
      {{.no_wait = true}, HazardKind::kAsyncInFlightRead, "before the wait of a matrix operation"},
      {{.early_write = true}, HazardKind::kAsyncInFlightWrite, "which reads them"},
      {{.early_copy_read = true},
       HazardKind::kAsyncInFlightRead,
       "before the wait of the async copy"},
      {{.one_warp_less = true}, HazardKind::kDivergentBarrier, "leaves out operation 0"},
  };
  for (const auto &c : cases) {
    const auto hazard = run([&](const arch::Vec4 *source) { kernel(c.wrong, source); });
    EXPECT_EQ(hazard.kind, c.kind) << hazard.message;
    EXPECT_NE(hazard.message.find(c.text), std::string::npos) << hazard.message;
    EXPECT_EQ(hazard.message.rfind("kernels/arch/tests/wgmma_hazard_test.cpp:", 0), 0u)
        << hazard.message;
  }
}

/// What happens to registers between an operation and its wait.
TEST(WgmmaHazard, registers_in_flight) {
  const auto run_with = [](auto misuse) {
    return run([&](const arch::Vec4 *) {
      Tiles &shared = arch::shared_storage<Tiles>();
      for (uint32_t i = arch::thread_idx(); i < 512; i += 128)
        arch::shared_store(&shared.b[i], arch::Vec4{});
      arch::fence_async_proxy();
      arch::block_barrier();
      float c[32] = {}, other[32];
      uint32_t a[4] = {};
      const auto multiply = [&](bool accumulate) {
        arch::wgmma_fence(c, a);
        arch::wgmma_m64k16<arch::bf16>(c, a, arch::NMajorMatrix(shared.b, sizeof shared.b),
                                       accumulate);
        arch::wgmma_commit();
      };
      multiply(true);
      misuse(multiply, c, other, a);
      arch::wgmma_wait<0>(c, other);
    });
  };
  const auto nothing = run_with([](auto, auto &, auto &, auto &) {});
  EXPECT_EQ(nothing.message, "");
  const auto twice = run_with([](auto multiply, auto &, auto &, auto &) { multiply(true); });
  EXPECT_EQ(twice.message, "");
  const auto lost = run_with([](auto multiply, auto &, auto &, auto &) { multiply(false); });
  EXPECT_NE(lost.message.find("is overwritten before a wait"), std::string::npos) << lost.message;
  EXPECT_NE(lost.other.line, 0u);
  const auto unnamed =
      run_with([](auto, auto &, auto &other, auto &) { arch::wgmma_wait<0>(other); });
  EXPECT_NE(unnamed.message.find("no wait names the result"), std::string::npos) << unnamed.message;
  const auto operand = run_with([](auto, auto &, auto &, auto &a) { a[0] = 1; });
  EXPECT_NE(operand.message.find("are overwritten before this wait"), std::string::npos)
      << operand.message;
}

TEST(WgmmaHazard, matrix_begins_inside_a_group_of_rows) {
  const auto hazard = run([](const arch::Vec4 *) {
    Tiles &shared = arch::shared_storage<Tiles>();
    float c[32];
    arch::wgmma_fence(c);
    arch::wgmma_m64k16<arch::bf16>(c, arch::KMajorMatrix(shared.a).at(128),
                                   arch::KMajorMatrix(shared.b), false);
  });
  EXPECT_EQ(hazard.kind, HazardKind::kMisaligned) << hazard.message;
}

TEST(MbarrierHazard, used_before_it_is_initialised) {
  const auto hazard =
      run([](const arch::Vec4 *) { arch::mbarrier_arrive(&arch::shared_storage<Tiles>().barrier); },
          32);
  EXPECT_EQ(hazard.kind, HazardKind::kBarrierMisuse) << hazard.message;
}

/// One arrival of two is missing (nobody completes the phase), or one is too many.
TEST(MbarrierHazard, missing_and_surplus_arrivals) {
  for (const uint32_t arrivals : {1u, 3u}) {
    const auto hazard = run(
        [&](const arch::Vec4 *) {
          Tiles &shared = arch::shared_storage<Tiles>();
          if (arch::thread_idx() == 0) arch::mbarrier_init(&shared.barrier, 2);
          arch::block_barrier();
          if (arch::thread_idx() < arrivals) arch::mbarrier_arrive(&shared.barrier);
          arch::mbarrier_wait(&shared.barrier, 0);
        },
        32);
    EXPECT_EQ(hazard.kind, arrivals == 1 ? HazardKind::kDeadlock : HazardKind::kBarrierMisuse)
        << hazard.message;
    EXPECT_NE(hazard.message.find("1 of 2"), std::string::npos) << hazard.message;
  }
}

} // namespace
} // namespace assay::n_simt
