// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/guarded_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "kernels/simt/asan.h"

namespace assay::simt {
namespace {

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// The first byte that does not hold the pattern, or null. `bytes` is at least 1.
const std::byte *first_changed(const std::byte *zone, size_t bytes) {
  // Memory that equals itself shifted by one byte holds the first byte everywhere. To compare so is
  // much faster than to search.
  if (zone[0] == std::byte{GuardedBlock::kPattern} && std::memcmp(zone, zone + 1, bytes - 1) == 0)
    return nullptr;
  return std::find_if(zone, zone + bytes,
                      [](std::byte b) { return b != std::byte{GuardedBlock::kPattern}; });
}

} // namespace

GuardedBlock::GuardedBlock(size_t bytes, size_t alignment, size_t offset) : bytes_(bytes) {
  assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
  alignment = std::max<size_t>(alignment, 16);
  lead_ = round_up(kRedZone, alignment) + offset % alignment;
  // NOTE: the tail starts right behind the last byte, whatever its alignment: ASan can poison a
  // part of a granule where that part is its end.
  tail_ = round_up(lead_ + bytes + kRedZone, alignment) - lead_ - bytes;
  allocate(alignment);
  repaint_guards();
}

#if ASSAY_ASAN
void GuardedBlock::allocate(size_t alignment) {
  allocated_ = lead_ + bytes_ + tail_;
  allocation_ = static_cast<std::byte *>(std::aligned_alloc(alignment, allocated_));
  if (!allocation_) throw std::bad_alloc();
  data_ = allocation_ + lead_;
}
#else
// [no access][..., leading zone, data, tail][no access], the tail up to the end of its page.
void GuardedBlock::allocate(size_t alignment) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (alignment > page) throw std::invalid_argument("GuardedBlock: alignment above a page");
  const size_t inner = round_up(lead_ + bytes_ + tail_, page);
  allocated_ = inner + 2 * page;
  void *mapped =
      mmap(nullptr, allocated_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  allocation_ = static_cast<std::byte *>(mapped);
  if (mprotect(allocation_ + page, inner, PROT_READ | PROT_WRITE) != 0) {
    release();
    throw std::bad_alloc();
  }
  data_ = allocation_ + page + inner - tail_ - bytes_;
}
#endif

GuardedBlock::GuardedBlock(GuardedBlock &&other) noexcept { *this = std::move(other); }

GuardedBlock &GuardedBlock::operator=(GuardedBlock &&other) noexcept {
  std::swap(allocation_, other.allocation_);
  std::swap(allocated_, other.allocated_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(lead_, other.lead_);
  std::swap(tail_, other.tail_);
  return *this;
}

GuardedBlock::~GuardedBlock() { release(); }

void GuardedBlock::release() {
  if (!allocation_) return;
#if ASSAY_ASAN
  asan_unpoison(allocation_, allocated_);
  std::free(allocation_);
#else
  munmap(allocation_, allocated_);
#endif
  allocation_ = nullptr;
}

void GuardedBlock::repaint_guards() {
  asan_unpoison(zones(), lead_ + bytes_ + tail_);
  std::memset(zones(), kPattern, lead_);
  std::memset(data_ + bytes_, kPattern, tail_);
  asan_poison(zones(), lead_);
  asan_poison(data_ + bytes_, tail_);
}

ptrdiff_t GuardedBlock::first_changed_guard() const {
  if (!allocation_) return kIntact;
  // The zones must not be poisoned while they are read.
  asan_unpoison(zones(), lead_ + bytes_ + tail_);
  ptrdiff_t found = kIntact;
  const std::byte *hit = first_changed(zones(), lead_);
  if (!hit) hit = first_changed(data_ + bytes_, tail_);
  if (hit) found = hit - data_;
  asan_poison(zones(), lead_);
  asan_poison(data_ + bytes_, tail_);
  return found;
}

} // namespace assay::simt
