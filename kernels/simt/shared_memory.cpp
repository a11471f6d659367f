// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/shared_memory.h"

#include <cstring>

namespace assay::simt {

void SharedMemory::begin_block(size_t bytes) {
  // NOTE: blocks and launches of one size share the memory: a fuzzer launches thousands a second.
  if (!block_.data() || block_.bytes() != bytes) {
    block_ = GuardedBlock(bytes, kAlignment);
    bytes_ = bytes;
    history_.cover(block_.data(), bytes);
  } else if (block_.first_changed_guard() != GuardedBlock::kIntact) {
    block_.repaint_guards();
  }
  std::memset(block_.data(), 0xFF, bytes);
  shadow_.assign(bytes, kUndefined);
  history_.forget();
}

bool SharedMemory::all(State state, size_t offset, size_t bytes) const {
  const uint8_t *shadow = shadow_.data() + offset;
  const uint64_t pattern = 0x0101010101010101ull * state;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, shadow + i, 8);
    if (word != pattern) return false;
  }
  for (; i < bytes; ++i)
    if (shadow[i] != state) return false;
  return true;
}

bool SharedMemory::any(State state, size_t offset, size_t bytes) const {
  return bytes != 0 && std::memchr(shadow_.data() + offset, state, bytes) != nullptr;
}

void SharedMemory::mark(State state, size_t offset, size_t bytes) {
  std::memset(shadow_.data() + offset, state, bytes);
}

} // namespace assay::simt
