// SPDX-License-Identifier: Apache-2.0
// One request whose keys are cut in equal parts, one a rank: paged_attention_v2 and an exchange.
#pragma once

#include "kernels/bench/ranks/exchange_data.cuh"

namespace assay::bench {

struct DecodeCell {
  int keys = 131072, page_size = 16, num_qo_heads = 32, num_kv_heads = 8, head_dim = 128; // bf16
};

/// The keys of one rank: all of the request, or its part.
class ShardedDecode {
public:
  ShardedDecode(const Ranks &ranks, const DecodeCell &cell);

  /// Attention of a rank to all keys, or to its own part of them.
  void attend(int rank, bool part, bool enable_pdl) const;
  /// The exchange behind it: every rank gets all heads.
  void exchange(int rank, bool enable_pdl) const;

private:
  struct Rank {
    std::unique_ptr<DeviceArray<uint16_t>> kv, q, partial_o, o;
    std::unique_ptr<DeviceArray<float>> partial_lse, lse;
    std::unique_ptr<DeviceArray<int32_t>> table, lengths[2]; // lengths of whole and part
    std::unique_ptr<DeviceArray<char>> workspace, plans[2], window;
    std::unique_ptr<DeviceArray<uint32_t>> status;
  };
  assay_paged_params attention(int rank, bool part) const;
  assay_exchange_params merging(int rank) const;

  const Ranks &ranks_;
  const DecodeCell cell_;
  std::vector<Rank> data_;
  std::vector<void *> windows_;
  uint64_t window_bytes_ = 0;
};

} // namespace assay::bench
