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
  Rounds(const Arena &arena, char *outputs) : arena_(arena), outputs_(outputs), count_(1) {
    for (int i = 0; i < kInputs; ++i) {
      arena_.refill(100 + i);
      inputs_[i] = std::make_unique<DeviceArray<char>>(arena_.input_bytes);
      copy(inputs_[i]->get(), arena_.input, arena_.input_bytes);
    }
  }

  /// Other queries, and nothing left of earlier outputs.
  void prepare(int input, char *outputs) const {
    copy(arena_.input, inputs_[input]->get(), arena_.input_bytes);
    ASSAY_BENCH_CHECK(cudaMemsetAsync(outputs, kPoison, arena_.output_bytes, arena_.stream.get()));
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(arena_.stream.get()));
  }

  /// What a kernel writes for an input when nothing is timed, where it has never written before.
  std::unique_ptr<DeviceArray<char>> expected(int input, TimedKernel &kernel) const {
    auto out = std::make_unique<DeviceArray<char>>(arena_.output_bytes);
    prepare(input, out->get());
    for (int slot = 0; slot < arena_.slots; ++slot)
      kernel.run(slot, out->get());
    ASSAY_BENCH_CHECK(cudaStreamSynchronize(arena_.stream.get()));
    return out;
  }

  bool differ(const char *a, const char *b) const {
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

  char *outputs() const { return outputs_; }
  const Arena &arena() const { return arena_; }

private:
  void copy(void *to, const void *from, uint64_t bytes) const {
    ASSAY_BENCH_CHECK(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, arena_.stream.get()));
  }

  const Arena &arena_;
  char *outputs_;
  std::unique_ptr<DeviceArray<char>> inputs_[kInputs];
  DeviceArray<unsigned long long> count_;
};

/// One arm: a graph of all calls, and what it must write for each input.
class Arm {
public:
  Arm(const Rounds &rounds, const assay_kernel &kernel, TimedKernel &calls)
      : rounds_(rounds), calls_(calls),
        repeats_(kernel.determinism == ASSAY_DETERMINISM_RUN_TO_RUN),
        expected_{rounds.expected(0, calls), rounds.expected(1, calls)},
        graph_(rounds.arena().stream, rounds.arena().slots,
               [&](int slot) { calls.run(slot, rounds.outputs()); }) {}

  /// Microseconds a launch; `wrong` grows where the outputs are not what they should be.
  double replay(int input, uint64_t &wrong) const {
    warm();
    rounds_.prepare(input, rounds_.outputs());
    const double us = graph_.replay_us() / rounds_.arena().slots;
    wrong += repeats_ && rounds_.differ(rounds_.outputs(), expected(input));
    return us;
  }
  const char *expected(int input) const { return expected_[input]->get(); }

private:
  /// Fetches the kernel's instructions: base runs in two arms of three, and would find its own in
  /// the caches more often than head (3 to 7 % in small cells of tree_attention). The last slot's
  /// keys have left the L2 when its turn comes.
  void warm() const { calls_.run(rounds_.arena().slots - 1, rounds_.outputs()); }

  const Rounds &rounds_;
  TimedKernel &calls_;
  bool repeats_; // the kernel promises the same bits again
  std::array<std::unique_ptr<DeviceArray<char>>, kInputs> expected_;
  Graph graph_; // behind a first call: what is wrong with it shows there, not in a capture
};

} // namespace

void run_rounds(const Arena &arena, const KernelPair &pair, TimedKernel &base, TimedKernel &head,
                char *outputs, Duel &out) {
  const Rounds rounds(arena, outputs);
  const Arm of_base(rounds, *pair.base, base), of_head(rounds, *pair.head, head),
      again(rounds, *pair.base, base);
  for (int i = 0; i < kInputs; ++i)
    out.same_bits &= !rounds.differ(of_base.expected(i), of_head.expected(i));
  const Arm *arms[] = {&of_base, &of_head, &again};
  std::vector<double> *times[] = {&out.us.base, &out.us.head, &out.us.again};
  uint64_t *wrong[] = {&out.base_wrong, &out.wrong, &out.base_wrong};
  for (int round = 0; round < kRounds + kWarmUps; ++round)
    for (const int arm : kOrders[round % 6]) {
      const double us = arms[arm]->replay(round % kInputs, *wrong[arm]);
      if (round >= kWarmUps) times[arm]->push_back(us);
    }
}

} // namespace assay::bench
