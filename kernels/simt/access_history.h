// SPDX-License-Identifier: Apache-2.0
// Who touched some bytes of memory: the last writer of each word, and who has read it since.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/simt/site.h"

namespace assay::simt {

// A Site in eight bytes. Lines behind 65,535 count as that one.
class PackedSite {
public:
  PackedSite() = default;
  PackedSite(const Site &site)
      : bits_(reinterpret_cast<uintptr_t>(site.file) << 16 | std::min(site.line, 0xffffu)) {}
  Site site() const {
    return {reinterpret_cast<const char *>(bits_ >> 16), static_cast<uint32_t>(bits_ & 0xffff)};
  }
  bool operator==(const PackedSite &) const = default;

private:
  uint64_t bits_ = 0;
};

// How memory was touched: plainly, or by an atomic operation of some scope.
enum class How : uint8_t { kPlain, kAtomicInBlock, kAtomic, kAtomicInSystem };

// An access of one thread. Of shared memory launch and block are those that run.
struct Writer {
  PackedSite site;
  uint32_t launch = 0; // number of the launch in Memory; 0: nobody
  uint32_t block = 0;
  uint32_t stamp = 0; // the thread's BlockClocks::epoch()
  uint16_t thread = 0;
  How how = How::kPlain;
  uint8_t bytes : 7 = 0; // bytes of an atomic operation
  uint8_t takes : 1 = 0; // an atomic load whose value must not be overwritten first
};

// Reads of lanes of one warp, at one line and with one stamp.
struct Readers {
  PackedSite site;
  uint32_t launch = 0;
  uint32_t block = 0;
  uint32_t stamp = 0; // or the number of a matrix operation
  uint32_t lanes = 0; // 0: nobody
  uint32_t next = 0;  // in AccessHistory; 0: none
  uint32_t warps = 0; // of the newest: warps of its block that have readers here
  uint8_t warp = 0;
  How how = How::kPlain;
  uint8_t bytes : 7 = 0;
  uint8_t takes : 1 = 0;
  uint8_t matrix : 1 = 0; // by a matrix operation of the warp
  uint8_t depth : 7 = 0;  // how many of other blocks may stand behind it

  // The reader that lane `lane` of the warp is.
  Writer of_lane(uint32_t lane) const {
    Writer reader;
    reader.site = site;
    reader.launch = launch;
    reader.block = block;
    reader.stamp = stamp;
    reader.thread = static_cast<uint16_t>(warp * 32 + lane);
    reader.how = how;
    reader.bytes = bytes;
    reader.takes = takes;
    return reader;
  }
  bool same_block(const Readers &other) const {
    return block == other.block && launch == other.launch;
  }
  bool same_warp(const Readers &other) const {
    return warp == other.warp && same_block(other) && matrix == other.matrix;
  }
  bool same_time(const Readers &other) const {
    return stamp == other.stamp && same_warp(other) && how == other.how && takes == other.takes;
  }
};

inline Readers readers_of(const Writer &access) {
  Readers reader;
  reader.site = access.site;
  reader.launch = access.launch;
  reader.block = access.block;
  reader.stamp = access.stamp;
  reader.lanes = 1u << access.thread % 32;
  reader.warp = static_cast<uint8_t>(access.thread / 32);
  reader.how = access.how;
  reader.bytes = access.bytes;
  reader.takes = access.takes;
  return reader;
}

// The accesses of one buffer, or of the shared memory of a block. It takes memory only where
// something was touched. A chunk has one cell per 16 bytes, until something smaller is touched
// there.
class AccessHistory {
public:
  struct Cell {
    Writer writer;
    Readers readers; // the newest ones; `next` has the others
  };

  bool empty() const { return chunks_.empty(); }
  // Is called before the first access, and whenever the memory is another one.
  void cover(const void *data, size_t bytes);
  // Forgets every access. Takes constant time.
  void forget();
  // Forgets the readers of launches before `oldest`, which nothing runs beside any more.
  void forget_readers_before(uint32_t oldest) {
    if (oldest == oldest_) return;
    oldest_ = oldest;
    more_.resize(1);
    free_ = 0;
  }

  // Calls f(cell) for the cells of the range, which hold no byte beside it.
  template <class F>
  [[gnu::always_inline]] void each(const void *address, size_t bytes, F f) {
    const auto begin = reinterpret_cast<uintptr_t>(address), end = begin + bytes;
    for (uintptr_t at = begin; at < end;) {
      const uintptr_t stop = std::min(end, at / kChunkBytes * kChunkBytes + kChunkBytes);
      Chunk &chunk = chunks_[at / kChunkBytes - first_];
      const auto shift = static_cast<uint32_t>(std::countr_zero(at | stop | kCoarsest));
      if (chunk.serial != serial_ || shift < chunk.shift) [[unlikely]]
        prepare(chunk, shift);
      Cell *cell = &chunk.cells[at % kChunkBytes >> chunk.shift];
      for (Cell *last = &chunk.cells[(stop - 1) % kChunkBytes >> chunk.shift]; cell <= last; ++cell)
        f(*cell);
      at = stop;
    }
  }

  // Adds the read of one lane. Readers of this block up to the stamp `over` need not be kept.
  void add(Cell &cell, const Readers &reader, uint32_t over) {
    Readers &newest = cell.readers;
    if (newest.same_time(reader) &&
        ((newest.lanes & reader.lanes) != 0 || (newest.lanes != 0 && newest.site == reader.site)))
        [[likely]] {
      newest.lanes |= reader.lanes;
      return;
    }
    if (newest.lanes == 0 || newest.launch < oldest_) {
      newest = reader;
      newest.warps = 1u << reader.warp % 32;
    } else {
      add_beside(cell, reader, over);
    }
  }
  // Calls f(readers) for those of a cell.
  template <class F>
  void each_reader(const Cell &cell, F f) const {
    if (cell.readers.lanes == 0 || cell.readers.launch < oldest_) return;
    f(cell.readers);
    for (uint32_t i = cell.readers.next; i != 0; i = more_[i].next)
      f(more_[i]);
  }
  void forget_readers(Cell &cell) {
    if (cell.readers.next != 0 && cell.readers.launch >= oldest_) release(cell.readers.next);
    cell.readers.lanes = cell.readers.next = 0;
  }

private:
  static constexpr uintptr_t kChunkBytes = 1024, kCoarsest = 16;
  static constexpr uint32_t kCoarsestShift = 4;
  // About so many reads by warps of other blocks are kept for a word, the latest: a plan is read by
  // every block of a grid.
  static constexpr uint32_t kOfOthers = 64;
  struct Chunk {
    std::unique_ptr<Cell[]> cells;
    size_t capacity = 0;
    uint32_t shift = 0;  // bytes of a cell: 1 << shift
    uint64_t serial = 0; // that of the history when it was touched
  };
  void prepare(Chunk &chunk, uint32_t shift);
  void refine(Chunk &chunk, uint32_t shift);
  void add_beside(Cell &cell, const Readers &reader, uint32_t over);
  bool join(const Readers &newest, const Readers &reader);
  template <class Replace>
  void clean(Readers &newest, Replace replace, uint32_t over);
  uint32_t drop_oldest(Readers &newest);
  uint32_t keep(const Readers &readers);
  void release(uint32_t first);

  std::vector<Chunk> chunks_; // chunks at addresses that are multiples of kChunkBytes
  uintptr_t first_ = 0;       // number of chunks_[0]
  uint64_t serial_ = 1;
  std::vector<Readers> more_ = std::vector<Readers>(1);
  uint32_t free_ = 0; // unused ones
  uint32_t oldest_ = 0;
};

} // namespace assay::simt
