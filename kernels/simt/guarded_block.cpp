// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/guarded_block.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/simt/asan.h"

namespace assay::simt {
namespace {

// Null when all bytes hold the pattern. `bytes` is at least 1.
const std::byte *first_changed(const std::byte *zone, size_t bytes) {
  // Equal to itself shifted by one byte: all bytes are the first one. Much faster than a search.
  if (zone[0] == std::byte{GuardedBlock::kPattern} && std::memcmp(zone, zone + 1, bytes - 1) == 0)
    return nullptr;
  return std::find_if(zone, zone + bytes,
                      [](std::byte b) { return b != std::byte{GuardedBlock::kPattern}; });
}

} // namespace

GuardedBlock::GuardedBlock(size_t bytes, size_t alignment) : bytes_(bytes) {
  assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
  alignment = std::max<size_t>(alignment, 16);
  lead_ = (kRedZone + alignment - 1) / alignment * alignment;
  // NOTE: the tail starts right after the last byte, whatever its alignment: ASan poisons partial
  // granules at a block's end exactly.
  const size_t total = (lead_ + bytes + kRedZone + alignment - 1) / alignment * alignment;
  tail_ = total - lead_ - bytes;
  allocation_ = static_cast<std::byte *>(std::aligned_alloc(alignment, total));
  if (!allocation_) throw std::bad_alloc();
  data_ = allocation_ + lead_;
  repaint_guards();
}

GuardedBlock::GuardedBlock(GuardedBlock &&other) noexcept { *this = std::move(other); }

GuardedBlock &GuardedBlock::operator=(GuardedBlock &&other) noexcept {
  std::swap(allocation_, other.allocation_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(lead_, other.lead_);
  std::swap(tail_, other.tail_);
  return *this;
}

GuardedBlock::~GuardedBlock() { release(); }

void GuardedBlock::release() {
  if (!allocation_) return;
  asan_unpoison(allocation_, lead_ + bytes_ + tail_);
  std::free(allocation_);
  allocation_ = nullptr;
}

void GuardedBlock::repaint_guards() {
  asan_unpoison(allocation_, lead_ + bytes_ + tail_);
  std::memset(allocation_, kPattern, lead_);
  std::memset(data_ + bytes_, kPattern, tail_);
  asan_poison(allocation_, lead_);
  asan_poison(data_ + bytes_, tail_);
}

ptrdiff_t GuardedBlock::first_changed_guard() const {
  if (!allocation_) return kIntact;
  // Reading the zones needs them unpoisoned for the moment.
  asan_unpoison(allocation_, lead_ + bytes_ + tail_);
  ptrdiff_t found = kIntact;
  const std::byte *hit = first_changed(allocation_, lead_);
  if (!hit) hit = first_changed(data_ + bytes_, tail_);
  if (hit) found = hit - data_;
  asan_poison(allocation_, lead_);
  asan_poison(data_ + bytes_, tail_);
  return found;
}

} // namespace assay::simt
