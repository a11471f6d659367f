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
/// its number alone, so that blocks need not meet. The blocks of the largest call are resident at
/// once on 128 multiprocessors, each of which has room for so many (registers: 64 or 128 a thread).
constexpr int exchange_blocks(int ranks) { return ranks <= 4 ? 8 : 4; }
constexpr int exchange_workers(int ranks) { return 128 * kExchangeWarps * exchange_blocks(ranks); }

/// A state travels as packets of 16 bytes: three words of it and the epoch. Its first word is the
/// LSE, the others are o.
inline constexpr int kPacketBytes = 16, kPacketWords = 3;
inline constexpr uint32_t kEpochsUntilFull = 1 << 16; // every place is written so often

/// A window: how often each worker of its rank has been through, and twice the packets that a
/// worker of every rank has for this one. It is laid out for the largest call on it. A call with
/// fewer rows has fewer workers, or workers with fewer states.
struct ExchangeWindow {
  int32_t num_ranks, workers; // at most
  uint32_t packets;           // packets of a worker of one rank, in one of the two halves

  ASSAY_HOST_DEVICE int64_t epoch_at(int worker) const { return 4 * int64_t{worker}; }
  ASSAY_HOST_DEVICE int64_t packets_at() const { return (4 * int64_t{workers} + 127) / 128 * 128; }
  /// The place of what `rank` has written in this epoch.
  ASSAY_HOST_DEVICE int64_t area_at(uint32_t epoch, int rank, int worker) const {
    const auto area =
        static_cast<uint32_t>((static_cast<int>(epoch % 2) * num_ranks + rank) * workers + worker);
    return packets_at() + static_cast<int64_t>(uint64_t{area} * packets * kPacketBytes);
  }
  int64_t bytes() const {
    return packets_at() + int64_t{2} * num_ranks * workers * packets * kPacketBytes;
  }

  ASSAY_FIELDS(num_ranks, workers, packets)
};

/// Heads first .. first + count - 1 of a call.
struct HeadRange {
  int32_t first, count;
  FastDivisor divide; // by count, if that is not 0

  /// What a rank gets of `num_heads`, which are below 2^21.
  static HeadRange of(int rank, int num_ranks, int num_heads, bool all) {
    if (all) return make(0, num_heads);
    const int begin = rank * num_heads / num_ranks, end = (rank + 1) * num_heads / num_ranks;
    return make(begin, end - begin);
  }
  static HeadRange make(int first, int count) {
    return {first, count, FastDivisor::make(count > 0 ? static_cast<uint32_t>(count) : 1)};
  }

  ASSAY_FIELDS(first, count, divide)
};

struct ExchangeParams {
  StateTensor in, out; // rows and heads of this rank; out.lse may be null
  char *windows[kMaxRanks];
  uint32_t *status;
  uint64_t timeout_ns;
  ExchangeWindow window;
  HeadRange heads[kMaxRanks]; // that each rank gets
  int32_t rank;
  int32_t num_rows, o_words; // o_words: of a state, 32 bits each
  int32_t workers, states_per_worker;
  int32_t packets;    // packets of a state
  int32_t lanes_log2; // a state has 2^lanes_log2 <= 32 lanes, one a packet at a time
  float scale;        // makes base-2 logits of differences of LSEs: 1 or log2 e
  float unit;         // the inverse of scale: 1 or ln 2

  ASSAY_FIELDS(in, out, windows, status, timeout_ns, window, heads, rank, num_rows, o_words,
               workers, states_per_worker, packets, lanes_log2, scale, unit)
};

} // namespace assay
