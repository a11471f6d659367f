// SPDX-License-Identifier: Apache-2.0
// NCCL as the exchange would be without a kernel of its own. The library is loaded when it is asked
// for, so that nothing here depends on it.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

namespace assay::bench {

/// One communicator a rank, all of this process.
class Nccl {
public:
  /// `path` of libnccl.so.2. Throws std::runtime_error where it cannot be used.
  Nccl(const std::string &path, int ranks);

  /// Every rank gets the o and lse of all, in their order. `elements` of 2 or 4 bytes each.
  void all_gather(int rank, const void *o, void *all_o, size_t elements, int bytes,
                  const float *lse, float *all_lse, size_t rows, cudaStream_t stream) const;
  /// Rank r gets part r of everybody's o and lse, where each part lies in one piece.
  void all_to_all(int rank, const void *o, void *parts_o, size_t elements, int bytes,
                  const float *lse, float *parts_lse, size_t rows, cudaStream_t stream) const;

private:
  using Comm = void *;
  void check(int result, const char *what) const;
  int (*init_all_)(Comm *, int, const int *) = nullptr;
  int (*all_gather_)(const void *, void *, size_t, int, Comm, cudaStream_t) = nullptr;
  int (*send_)(const void *, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*recv_)(void *, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  const char *(*error_string_)(int) = nullptr;
  std::vector<Comm> comms_;
};

} // namespace assay::bench
