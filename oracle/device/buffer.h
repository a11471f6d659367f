// SPDX-License-Identifier: Apache-2.0
// Internal: memory of the device.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::oracle::device {

inline void require(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("oracle: ") + what + ": " + cudaGetErrorString(error));
}

/** Memory of the device that grows and is kept. */
class Buffer {
public:
  Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { cudaFree(data_); }

  template <class T>
  T *reserve(size_t count) {
    const size_t bytes = std::max<size_t>(count, 1) * sizeof(T);
    if (bytes > bytes_) {
      cudaFree(data_);
      data_ = nullptr;
      bytes_ = 0;
      require(cudaMalloc(&data_, bytes), "memory");
      bytes_ = bytes;
    }
    return static_cast<T *>(data_);
  }
  /** With room to grow, where sizes differ from call to call. */
  template <class T>
  T *roomy(size_t count) {
    return reserve<T>(count * sizeof(T) > bytes_ ? count + count / 2 : count);
  }
  /** The copy is done when this returns, as far as `from` is concerned. */
  template <class T>
  T *copy(const T *from, size_t count, cudaStream_t stream) {
    T *to = reserve<T>(count);
    require(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyHostToDevice, stream),
            "copy to the device");
    return to;
  }
  template <class T>
  T *copy(const std::vector<T> &from, cudaStream_t stream) {
    return copy(from.data(), from.size(), stream);
  }

private:
  void *data_ = nullptr;
  size_t bytes_ = 0;
};

} // namespace assay::oracle::device
