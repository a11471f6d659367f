// SPDX-License-Identifier: Apache-2.0
// The buffers of a call where another process sees them too.
#pragma once

#include <cstddef>
#include <vector>

#include "properties/call/tensors.h"
#include "properties/sut/sut.h"

namespace assay {

/// Memory that a process started later sees too. It keeps its contents from case to case. Throws
/// std::runtime_error where there is none.
class SharedMemory {
public:
  SharedMemory();
  /// Another process's; owns the descriptor.
  explicit SharedMemory(int fd) : fd_(fd) {}
  SharedMemory(const SharedMemory &) = delete;
  ~SharedMemory();
  /// At least so many bytes, at the same offset 0 in the other process's file.
  std::byte *room(size_t bytes);
  /// In a forked process: all `size` bytes that the other one has made it.
  std::byte *see(size_t size);
  size_t size() const { return size_; }
  int fd() const { return fd_; }

private:
  void map(size_t size);

  int fd_ = -1;
  std::byte *at_ = nullptr;
  size_t size_ = 0;
};

/// Where the buffers of a call lie in one piece of memory, each between two guard bands.
struct CallLayout {
  explicit CallLayout(const Tensors &t);
  std::vector<size_t> offsets; ///< offset of buffer i, a multiple of 256
  size_t bytes = 0;            ///< bytes of all
};

/// Every buffer to its place, between new guard bands.
void put_buffers(const Tensors &t, const CallLayout &layout, std::byte *memory);
/// What is there now, copied once: what another process writes later is not judged. Changed bands
/// are violations.
void take_buffers(Tensors &t, const CallLayout &layout, const std::byte *memory, RunResult &result);

} // namespace assay
