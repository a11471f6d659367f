// SPDX-License-Identifier: Apache-2.0
// Where the keys of a cache stand in their request: at their own index, or in a shard where the
// layout over ranks says.
#pragma once

#include "kernels/common/paged_kv.cuh"

namespace assay::ASSAY_TARGET {

/// The position of key `index` of the cache. A cache that is no shard has one rank, and adds 0.
ASSAY_DEVICE int position_of(const ShardParams &shard, int index) {
  const int runs = divide(index, shard.run);
  return index + runs * static_cast<int>(shard.turn.divisor - shard.run.divisor) + shard.first;
}

/// How many of the first n tokens of a request the cache holds. Of a negative n it is 0. The keys
/// at positions [a, b) are those of index [keys_before(a), keys_before(b)).
ASSAY_DEVICE int keys_before(const ShardParams &shard, int n) {
  if (n <= 0) return 0;
  const int run = static_cast<int>(shard.run.divisor);
  const int turns = divide(n, shard.turn);
  const int rest = n - turns * static_cast<int>(shard.turn.divisor) - shard.first;
  return turns * run + (rest < 0 ? 0 : rest < run ? rest : run);
}

/// Tokens of a request on all ranks. `seq_len`: those in the cache.
ASSAY_DEVICE int request_tokens(const ShardParams &shard, int request, int seq_len) {
  return shard.global_lens == nullptr ? seq_len : arch::global_load(shard.global_lens + request);
}

} // namespace assay::ASSAY_TARGET
