// SPDX-License-Identifier: Apache-2.0
// What the executor costs: nanoseconds per operation of a warp, best of several runs. Not a test;
// figures are in kernels/simt/MODEL.md.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/mma.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/simt/launch.h"

namespace assay::n_simt {
namespace {

constexpr int kRepeats = 2000; // operations per thread and launch
volatile float sink;

struct alignas(16) Storage {
  arch::Vec4 row[1024];
};

template <class Body>
void measure(const char *name, uint32_t threads, Body body) {
  simt::Stream stream;
  alignas(16) static arch::Vec4 global[1024];
  stream.memory.adopt(global, sizeof global, simt::Access::kReadOnly, "global");
  simt::LaunchConfig config;
  config.block = threads;
  config.shared_bytes = sizeof(Storage);
  double best = 1e30;
  uint64_t switches = 0;
  for (int run = 0; run < 9; ++run) {
    const uint64_t before = stream.counters.fiber_switches;
    const auto start = std::chrono::steady_clock::now();
    if (simt::launch(&stream, config, [&] {
          for (int i = 0; i < kRepeats; ++i)
            body(global);
        }) != simt::LaunchStatus::kOk) {
      std::printf("%s: %s\n", name, stream.hazards.back().message.c_str());
      return;
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
    switches = stream.counters.fiber_switches - before;
  }
  const double warps = threads / 32.0;
  std::printf("%-34s %8.1f ns per warp operation, %6.1f ns per thread, %5.1f ns per switch\n", name,
              best / kRepeats / warps, best / kRepeats / threads,
              best / static_cast<double>(std::max<uint64_t>(switches, 1)));
}

void run_all() {
  measure("warp_barrier", 32, [](auto *) { arch::warp_barrier(); });
  measure("block_barrier, 32 threads", 32, [](auto *) { arch::block_barrier(); });
  measure("block_barrier, 256 threads", 256, [](auto *) { arch::block_barrier(); });
  measure("block_barrier, 1024 threads", 1024, [](auto *) { arch::block_barrier(); });
  measure("shfl_xor", 32, [](auto *) { sink = arch::shfl_xor(1.0f, 1); });
  measure("shfl_xor, 256 threads", 256, [](auto *) { sink = arch::shfl_xor(1.0f, 1); });
  measure("ballot", 32, [](auto *) { sink = static_cast<float>(arch::ballot(true)); });
  measure("mma bf16", 32, [](auto *) {
    float c[4] = {1, 2, 3, 4};
    const uint32_t a[4] = {0x3f803f80, 0x40003f80, 0x3f803f80, 0xbf803f80};
    const uint32_t b[2] = {0x3f803f80, 0x3f803f80};
    arch::mma_m16n8k16<arch::bf16>(c, a, b);
    sink = c[0];
  });
  measure("mma fp16", 32, [](auto *) {
    float c[4] = {1, 2, 3, 4};
    const uint32_t a[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    const uint32_t b[2] = {0x3c003c00, 0x3c003c00};
    arch::mma_m16n8k16<arch::fp16>(c, a, b);
    sink = c[0];
  });
  measure("shared_store + shared_load, 4 B", 32, [](auto *) {
    uint32_t *words = &arch::shared_storage<Storage>().row[arch::lane_id()].x;
    arch::shared_store(words, 1u);
    sink = static_cast<float>(arch::shared_load(words));
  });
  measure("ldmatrix_x4 (+ store)", 32, [](auto *) {
    arch::Vec4 *row = &arch::shared_storage<Storage>().row[arch::lane_id()];
    arch::shared_store(row, arch::Vec4{});
    uint32_t r[4];
    arch::ldmatrix_x4(r, row);
    sink = static_cast<float>(r[0]);
  });
  measure("global_load, 16 B", 32, [](auto *global) {
    sink = static_cast<float>(arch::global_load(global + arch::lane_id()).x);
  });
  measure("cp_async_16, commit, wait", 32, [](auto *global) {
    arch::cp_async_16(&arch::shared_storage<Storage>().row[arch::lane_id()],
                      global + arch::lane_id(), true);
    arch::cp_async_commit();
    arch::cp_async_wait<0>();
  });
}

} // namespace
} // namespace assay::n_simt

int main() { assay::n_simt::run_all(); }
