// SPDX-License-Identifier: Apache-2.0
// Parameters of the exchange of states as the device sees them, and where a window has what.
#pragma once

#include "kernels/arch/host_device.h"
#include "kernels/common/state_tensor.h"

#include <cstdint>

namespace assay {

inline constexpr int kMaxRanks = 8;
inline constexpr int kExchangeThreads = 128, kExchangeWarps = kExchangeThreads / 32;
/// A worker is a warp. It sends and merges the same rows on every rank and waits for the workers of
/// its number alone, so that blocks need not meet. 256 blocks are resident at once, and those of
/// three more calls beside them, on every GPU with 2,048 threads on each of 64 multiprocessors.
inline constexpr int kExchangeWorkers = 1024;

/// A window: how often each worker of its rank has been through, a flag of every worker of every
/// rank, and twice the states that a worker of every rank has for this one. It is laid out for the
/// largest call on it. A call with fewer rows has fewer workers, or workers with fewer states.
struct ExchangeWindow {
  int32_t num_ranks, workers; // at most
  int64_t area_bytes;         // of a worker of one rank, in one of the two halves

  /// Words of all workers, in bytes: in lines of their own.
  ASSAY_HOST_DEVICE int64_t words() const { return (4 * int64_t{workers} + 127) / 128 * 128; }
  ASSAY_HOST_DEVICE int64_t epoch_at(int worker) const { return 4 * int64_t{worker}; }
  ASSAY_HOST_DEVICE int64_t flag_at(int rank, int worker) const {
    return words() * (1 + rank) + 4 * int64_t{worker};
  }
  ASSAY_HOST_DEVICE int64_t states_at() const { return words() * (1 + num_ranks); }
  /// Of the states that `rank` has written in this epoch.
  ASSAY_HOST_DEVICE int64_t area_at(uint32_t epoch, int rank, int worker) const {
    const int64_t area = (int64_t{epoch % 2} * num_ranks + rank) * workers + worker;
    return states_at() + area * area_bytes;
  }
  int64_t bytes() const { return states_at() + int64_t{2} * num_ranks * workers * area_bytes; }

  ASSAY_FIELDS(num_ranks, workers, area_bytes)
};

/// Heads first .. first + count - 1 of a call.
struct HeadRange {
  int32_t first, count;

  /// What a rank gets of `num_heads`, which are below 2^21.
  ASSAY_HOST_DEVICE static HeadRange of(int rank, int num_ranks, int num_heads, bool all) {
    if (all) return {0, num_heads};
    const int begin = rank * num_heads / num_ranks, end = (rank + 1) * num_heads / num_ranks;
    return {begin, end - begin};
  }
};

struct ExchangeParams {
  StateTensor in, out; // rows and heads of this rank; out.lse may be null
  char *windows[kMaxRanks];
  uint32_t *status;
  uint64_t timeout_ns;
  ExchangeWindow window;
  int32_t rank;
  int32_t num_rows, num_heads, head_dim;
  int32_t all_heads; // 1: every rank gets all of them
  int32_t workers, states_per_worker;
  int32_t lanes_log2; // a state has 2^lanes_log2 <= 32 lanes
  float scale;        // makes base-2 logits of differences of LSEs: 1 or log2 e
  float unit;         // the inverse of scale: 1 or ln 2

  ASSAY_FIELDS(in, out, windows, status, timeout_ns, window, rank, num_rows, num_heads, head_dim,
               all_heads, workers, states_per_worker, lanes_log2, scale, unit)
};

} // namespace assay
