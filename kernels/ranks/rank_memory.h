// SPDX-License-Identifier: Apache-2.0
// What ranks on the executor need beside the tensors of a case: windows, words of status, scratch.
#pragma once

#include "kernels/abi/assay.h"
#include "kernels/simt/function_ref.h"
#include "kernels/simt/stream.h"

#include <cstdint>
#include <vector>

namespace assay {

/// Buffers in the memory of a stream, for the time of one call.
class RankMemory {
public:
  /// Windows of `window_bytes` for the ranks: full of zeros, and watched for writes over what a
  /// peer may still be reading.
  RankMemory(simt::Stream &stream, int num_ranks, uint64_t window_bytes);
  ~RankMemory();
  RankMemory(const RankMemory &) = delete;
  RankMemory &operator=(const RankMemory &) = delete;

  void *const *windows() const { return windows_.data(); }
  uint32_t *status(int rank) const { return status_ + rank; }
  /// Memory that nobody has written.
  void *scratch(uint64_t bytes, const char *name);
  /// Memory that holds these words.
  int32_t *words(const std::vector<int32_t> &values, const char *name);

  /// Runs what each rank does side by side. Fails as the lowest rank that fails, or where a rank
  /// gave up waiting, or where a guard byte was written.
  assay_status run(simt::FunctionRef<assay_status(int rank)> rank);

private:
  void *keep(void *buffer);
  assay_status check_after() const;

  simt::Stream &stream_;
  int num_ranks_;
  std::vector<void *> windows_, buffers_;
  uint32_t *status_;
};

} // namespace assay
