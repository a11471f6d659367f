// SPDX-License-Identifier: Apache-2.0
// States of every rank, the windows between them, and what the exchange of them must give.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/bench/ranks/nccl.h"
#include "kernels/bench/ranks/ranks.cuh"

namespace assay::bench {

struct ExchangeCell {
  assay_dtype dtype; // ASSAY_BF16 or ASSAY_FP32
  assay_exchange_heads heads;
  int rows;
  int num_heads = 32, head_dim = 128;

  int bytes() const { return dtype == ASSAY_FP32 ? 4 : 2; }
  int64_t states() const { return int64_t{rows} * num_heads; }
  /// The number of heads that a rank merges.
  int own_heads(int ranks) const {
    return heads == ASSAY_EXCHANGE_ALL ? num_heads : num_heads / ranks;
  }
};

/// Calls differ by their set of states: a packet of the call before last is not that of this one.
inline constexpr int kStateSets = 4;

class ExchangeData {
public:
  ExchangeData(const Ranks &ranks, const ExchangeCell &cell);

  /// One exchange of a rank, of states `set`.
  void exchange(int rank, int set, bool enable_pdl, uint64_t timeout_ns = 2'000'000'000) const;
  /// The states of all ranks by NCCL, of set 0, and merge_states behind them where `merge`.
  void with_nccl(int rank, const Nccl &nccl, bool merge) const;
  /// Counts the words of the latest output of `set` that are not those of merge_states.
  void compare(int rank, int set) const;
  /// What was counted on all ranks, and the ranks' status words, all or'ed.
  uint64_t wrong_words() const;
  uint32_t status() const;
  /// Whether all of o is NaN on a rank.
  bool all_nan(int rank, int set) const;
  void clear() const;

  const ExchangeCell cell;

private:
  struct Set {
    DeviceArray<char> o_in, o, expected;
    DeviceArray<float> lse_in, lse;
    explicit Set(const ExchangeCell &cell)
        : o_in(cell.states() * cell.head_dim * cell.bytes()), o(o_in.size()), expected(o_in.size()),
          lse_in(cell.states()), lse(cell.states()) {}
  };
  struct Rank {
    std::vector<std::unique_ptr<Set>> sets;
    std::unique_ptr<DeviceArray<char>> window, gathered_o;
    std::unique_ptr<DeviceArray<float>> gathered_lse;
    std::unique_ptr<DeviceArray<uint32_t>> status;
    std::unique_ptr<DeviceArray<unsigned long long>> wrong;
  };
  assay_exchange_params params(int rank, int set) const;
  void expect(int rank, int set);
  int64_t out_bytes() const;

  const Ranks &ranks_;
  std::vector<Rank> data_;
  std::vector<void *> windows_;
  uint64_t window_bytes_ = 0;
};

/// Waits on the device, one time in four, up to `most_ns`.
void enqueue_jitter(cudaStream_t stream, uint32_t *random, uint32_t most_ns);

} // namespace assay::bench
