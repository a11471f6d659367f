// SPDX-License-Identifier: Apache-2.0
// Ranks on the executor that exchange states, with a result that is easy to know: every state of a
// row has LSE 0, so that the merged row is the mean.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/abi/assay.h"
#include "kernels/simt/ranks.h"

namespace assay {

struct ExchangeSizes {
  int ranks, rows, heads, head_dim, max_rows;
  assay_exchange_heads mode = ASSAY_EXCHANGE_SCATTER;
};

/// What one group of ranks has, in fp32.
class RankGroup {
public:
  RankGroup(simt::Stream &stream, const ExchangeSizes &sizes) : stream_(stream), sizes_(sizes) {
    assay_exchange_params p = params(0);
    EXPECT_EQ(assay_exchange_states_window_size(&p, &window_bytes), ASSAY_OK) << assay_last_error();
    for (int r = 0; r < sizes.ranks; ++r) {
      windows.push_back(buffer(window_bytes, "window"));
      std::memset(windows.back(), 0, window_bytes);
      o_in.push_back(floats(states() * sizes.head_dim));
      lse_in.push_back(floats(states()));
      o.push_back(floats(states() * sizes.head_dim));
      lse.push_back(floats(states()));
      status.push_back(static_cast<uint32_t *>(buffer(4, "status")));
      *status.back() = 0;
    }
  }

  size_t states() const { return static_cast<size_t>(sizes_.max_rows) * sizes_.heads; }

  assay_exchange_params params(int rank) {
    const ExchangeSizes &s = sizes_;
    assay_exchange_params p{};
    p.struct_size = sizeof p;
    p.target = ASSAY_TARGET_SIMT;
    p.dtype = ASSAY_FP32;
    p.lse_base = ASSAY_LSE_BASE_2;
    p.heads = s.mode;
    p.num_ranks = s.ranks;
    p.rank = rank;
    p.num_rows = s.rows;
    p.num_heads = s.heads;
    p.head_dim = s.head_dim;
    p.max_rows = s.max_rows;
    p.o_in_stride_row = p.out_stride_row = int64_t{s.heads} * s.head_dim;
    p.o_in_stride_head = p.out_stride_head = s.head_dim;
    p.lse_in_stride_row = p.lse_stride_row = s.heads;
    p.lse_in_stride_head = p.lse_stride_head = 1;
    p.timeout_ns = 1;
    p.stream = &stream_;
    if (o.size() != static_cast<size_t>(s.ranks)) return p;
    p.o_in = o_in[rank];
    p.lse_in = lse_in[rank];
    p.out = o[rank];
    p.lse = lse[rank];
    p.windows = windows.data();
    p.window_bytes = window_bytes;
    p.status = status[rank];
    return p;
  }

  /// One exchange of a rank, of numbers that tell rank and call apart.
  assay_status exchange(int rank, int call, int rows) {
    for (size_t i = 0; i < states(); ++i) {
      lse_in[rank][i] = 0;
      for (int d = 0; d < sizes_.head_dim; ++d)
        o_in[rank][i * sizes_.head_dim + d] = value(rank, call, i);
    }
    assay_exchange_params p = params(rank);
    p.num_rows = rows;
    return assay_exchange_states(&p);
  }
  static float value(int rank, int call, size_t state) {
    return static_cast<float>(1000 * rank + 16 * call + static_cast<int>(state % 13));
  }

  /// Elements of a rank's result that are not the mean of all ranks' states.
  size_t wrong(int rank, int call, int rows) const {
    const ExchangeSizes &s = sizes_;
    const bool all = s.mode == ASSAY_EXCHANGE_ALL;
    const int first = all ? 0 : rank * s.heads / s.ranks;
    const int end = all ? s.heads : (rank + 1) * s.heads / s.ranks;
    size_t count = 0;
    for (int row = 0; row < rows; ++row)
      for (int head = first; head < end; ++head) {
        float mean = 0;
        for (int r = 0; r < s.ranks; ++r)
          mean += value(r, call, static_cast<size_t>(row) * s.heads + head) / s.ranks;
        const size_t out = static_cast<size_t>(row) * s.heads + head - first;
        count += std::fabs(lse[rank][out] - std::log2(s.ranks)) > 1e-5f;
        for (int d = 0; d < s.head_dim; ++d)
          count += !(std::fabs(o[rank][out * s.head_dim + d] - mean) <= 1e-3f);
      }
    return count;
  }

  std::vector<void *> windows;
  uint64_t window_bytes = 0;
  std::vector<float *> o_in, lse_in, o, lse;
  std::vector<uint32_t *> status;

private:
  void *buffer(size_t bytes, const char *name) {
    return stream_.memory.allocate(bytes, simt::Access::kReadWrite, simt::InitState::kDefined,
                                   name);
  }
  float *floats(size_t count) { return static_cast<float *>(buffer(4 * count, "floats")); }

  simt::Stream &stream_;
  ExchangeSizes sizes_;
};

} // namespace assay
