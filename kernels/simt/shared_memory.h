// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/access_history.h"
#include "kernels/simt/guarded_block.h"

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

  // Who has touched the bytes in this block.
  AccessHistory &history() { return history_; }

  ptrdiff_t first_changed_guard() const { return block_.first_changed_guard(); }

private:
  GuardedBlock block_;
  size_t bytes_ = 0;
  std::vector<uint8_t> shadow_;
  AccessHistory history_;
};

} // namespace assay::simt
