// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/guarded_block.h"
#include "kernels/simt/site.h"

namespace assay::simt {

// The dynamic shared memory of the running block, and the state of each of its bytes.
class SharedMemory {
public:
  enum State : uint8_t { kUndefined = 0, kDefined = 1, kInFlight = 2 };
  static constexpr size_t kAlignment = 1024; // the strictest that device code may ask for

  // Begins a block: the contents are 0xFF, a NaN in every format, and no byte is defined.
  void begin_block(size_t bytes);

  std::byte *data() const { return block_.data(); }
  size_t bytes() const { return bytes_; }
  bool contains(const void *address, size_t bytes) const {
    const uintptr_t offset =
        reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(block_.data());
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  size_t offset_of(const void *address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(block_.data());
  }

  // Whether all of [offset, offset + bytes) is in `state`.
  bool all(State state, size_t offset, size_t bytes) const;
  bool any(State state, size_t offset, size_t bytes) const;
  void mark(State state, size_t offset, size_t bytes);

  // Who wrote each 16 bytes last, and behind how many of the writer's fences. Matrix operations ask
  // for it: they see a write only behind a fence of its writer.
  struct Writer {
    uint64_t block = 0; // number of the block among all that this memory has had
    uint32_t thread = 0, fences = 0;
    Site site;
  };
  static constexpr size_t kWriterBytes = 16;
  void set_writer(size_t offset, size_t bytes, uint32_t thread, uint32_t fences, Site site) {
    for (size_t i = offset / kWriterBytes; i <= (offset + bytes - 1) / kWriterBytes; ++i)
      writers_[i] = {block_count_, thread, fences, site};
  }
  // The writer of the 16 bytes at `offset`. Null where nobody of this block has written them.
  const Writer *writer(size_t offset) const {
    const Writer &w = writers_[offset / kWriterBytes];
    return w.block == block_count_ ? &w : nullptr;
  }

  // How many matrix operations in flight read each line of 128 bytes.
  static constexpr size_t kLineBytes = 128;
  void add_readers(size_t offset, size_t bytes, int count) {
    for (size_t i = offset / kLineBytes; i <= (offset + bytes - 1) / kLineBytes; ++i)
      readers_[i] = static_cast<uint16_t>(readers_[i] + count);
    total_readers_ += count;
  }
  bool has_readers(size_t offset, size_t bytes) const {
    if (total_readers_ == 0 || bytes == 0) return false;
    for (size_t i = offset / kLineBytes; i <= (offset + bytes - 1) / kLineBytes; ++i)
      if (readers_[i] != 0) return true;
    return false;
  }

  ptrdiff_t first_changed_guard() const { return block_.first_changed_guard(); }

private:
  GuardedBlock block_;
  size_t bytes_ = 0;
  std::vector<uint8_t> shadow_;
  std::vector<Writer> writers_;
  std::vector<uint16_t> readers_;
  int total_readers_ = 0;
  uint64_t block_count_ = 0;
};

} // namespace assay::simt
