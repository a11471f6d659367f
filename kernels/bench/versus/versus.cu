// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/versus/versus.cuh"

#include <array>

namespace assay::bench {
namespace {

/// Every order of three arms: after six rounds each has stood everywhere equally often.
constexpr int kOrders[6][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}, {1, 0, 2}};
constexpr int kRounds = 24, kWarmUps = 2, kInputs = 2, kPoison = 0xff;
constexpr int kThreads = 256, kBlocks = 264;

__global__ void count_different(const uint4 *a, const uint4 *b, uint64_t n,
                                unsigned long long *count) {
  unsigned long long different = 0;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < n;
       i += uint64_t{gridDim.x} * blockDim.x) {
    const uint4 x = a[i], y = b[i];
    different += x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w;
  }
  if (different > 0) atomicAdd(count, different);
}

/// The device side of one duel.
class Rounds {
public:
  explicit Rounds(const Arena &arena) : arena_(arena), count_(1) {
    for (int i = 0; i < kInputs; ++i) {
      arena_.refill(100 + i);
      inputs_[i] = std::make_unique<DeviceArray<char>>(arena_.input_bytes);
      copy(inputs_[i]->get(), arena_.input, arena_.input_bytes);
    }
  }

  /// Other queries, and nothing left of earlier outputs.
  void prepare(int input) const {
    copy(arena_.input, inputs_[input]->get(), arena_.input_bytes);
    ASSAY_BENCH_CHECK(
        cudaMemsetAsync(arena_.outputs, kPoison, arena_.output_bytes, arena_.stream.get()));
  }

  /// What a kernel writes for one input when nothing is timed.
  std::unique_ptr<DeviceArray<char>> expected(int input, const RunSet &run) const {
    prepare(input);
    for (int set = 0; set < arena_.sets; ++set)
      run(set);
    auto out = std::make_unique<DeviceArray<char>>(arena_.output_bytes);
    copy(out->get(), arena_.outputs, arena_.output_bytes);
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(arena_.stream.get()));
    return out;
  }

  bool differs(const char *a, const char *b) const {
    const cudaStream_t stream = arena_.stream.get();
    unsigned long long count = 0;
    ASSAY_BENCH_CHECK(cudaMemsetAsync(count_.get(), 0, sizeof count, stream));
    count_different<<<kBlocks, kThreads, 0, stream>>>(
        reinterpret_cast<const uint4 *>(a), reinterpret_cast<const uint4 *>(b),
        arena_.output_bytes / sizeof(uint4), count_.get());
    ASSAY_BENCH_CHECK(cudaGetLastError());
    ASSAY_BENCH_CHECK(
        cudaMemcpyAsync(&count, count_.get(), sizeof count, cudaMemcpyDeviceToHost, stream));
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(stream));
    return count > 0;
  }
  bool wrote(const DeviceArray<char> &expected) const {
    return !differs(arena_.outputs, expected.get());
  }

private:
  void copy(void *to, const void *from, uint64_t bytes) const {
    ASSAY_BENCH_CHECK(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, arena_.stream.get()));
  }

  const Arena &arena_;
  std::unique_ptr<DeviceArray<char>> inputs_[kInputs];
  DeviceArray<unsigned long long> count_;
};

/// One arm: a graph over the sets, and what it must write for each input.
struct Contestant {
  std::array<std::unique_ptr<DeviceArray<char>>, kInputs> expected;
  Graph graph;  // behind a first call: what is wrong with it shows there, not in a capture
  bool repeats; // the kernel promises the same bits again

  Contestant(const Arena &arena, const Rounds &rounds, int launches, const assay_kernel &kernel,
             const RunSet &run)
      : expected{rounds.expected(0, run), rounds.expected(1, run)},
        graph(arena.stream, launches, [&](int i) { run(i % arena.sets); }),
        repeats(kernel.determinism == ASSAY_DETERMINISM_RUN_TO_RUN) {}
};

} // namespace

void run_rounds(const Arena &arena, const KernelPair &pair, const RunSet &base, const RunSet &head,
                Duel &out) {
  const Rounds rounds(arena);
  const int launches = std::max(arena.sets, 4);
  const Contestant of_base(arena, rounds, launches, *pair.base, base),
      of_head(arena, rounds, launches, *pair.head, head),
      again(arena, rounds, launches, *pair.base, base);
  for (int i = 0; i < kInputs; ++i)
    if (rounds.differs(of_base.expected[i]->get(), of_head.expected[i]->get()))
      out.same_bits = false;
  const Contestant *arms[] = {&of_base, &of_head, &again};
  std::vector<double> *times[] = {&out.us.base, &out.us.head, &out.us.again};
  uint64_t *wrong[] = {&out.base_wrong, &out.wrong, &out.base_wrong};
  for (int round = 0; round < kRounds + kWarmUps; ++round)
    for (const int arm : kOrders[round % 6]) {
      const int input = round % kInputs;
      rounds.prepare(input);
      ASSAY_BENCH_CHECK(cudaStreamSynchronize(arena.stream.get()));
      const double us = arms[arm]->graph.replay_us();
      if (arms[arm]->repeats && !rounds.wrote(*arms[arm]->expected[input])) ++*wrong[arm];
      if (round >= kWarmUps) times[arm]->push_back(us / launches);
    }
}

} // namespace assay::bench
