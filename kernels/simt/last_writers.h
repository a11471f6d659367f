// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/simt/site.h"

namespace assay::simt {

// Who wrote some bytes of global memory last, and when; of buffers whose readers are watched also
// who read them.
struct Writer {
  // The scope of an atomic operation.
  enum class How : uint8_t { kPlain, kAtomicInBlock, kAtomic, kAtomicInSystem };
  Site site;
  uint32_t launch = 0; // number of the launch in Memory; 0: nobody
  uint32_t block = 0;
  uint32_t stamp = 0; // stamp of OrderGraph
  uint16_t thread = 0;
  How how = How::kPlain;
  uint8_t bytes = 0;  // bytes of an atomic operation
  bool takes = false; // an atomic load whose value must not be overwritten first
};

// The last writers of one buffer. It takes memory only where something was written. A chunk has one
// writer per 16 bytes, until something smaller is written there.
class LastWriters {
public:
  bool empty() const { return chunks_.empty(); }
  // Is called once, before the first write.
  void cover(const void *data, size_t bytes);

  // Calls f(writer) for every part of the range that may have been written.
  template <class F>
  void read(const void *address, size_t bytes, F f) {
    each_chunk(address, bytes, [&](Chunk &chunk, uintptr_t begin, uintptr_t end) {
      if (chunk.writers) each_writer(chunk, begin, end, f);
    });
  }
  // Calls f(writer) for writers of the range and of no byte beside it.
  template <class F>
  void write(const void *address, size_t bytes, F f) {
    each_chunk(address, bytes, [&](Chunk &chunk, uintptr_t begin, uintptr_t end) {
      const auto shift = static_cast<uint32_t>(std::countr_zero(begin | end | kCoarsest));
      if (!chunk.writers || shift < chunk.shift) [[unlikely]]
        refine(chunk, shift);
      each_writer(chunk, begin, end, f);
    });
  }

private:
  static constexpr uintptr_t kChunkBytes = 1024, kCoarsest = 16;
  struct Chunk {
    std::unique_ptr<Writer[]> writers;
    uint32_t shift = 0; // bytes of a writer: 1 << shift
  };
  static void refine(Chunk &chunk, uint32_t shift);

  template <class F>
  void each_chunk(const void *address, size_t bytes, F f) {
    const auto begin = reinterpret_cast<uintptr_t>(address), end = begin + bytes;
    for (uintptr_t at = begin; at < end;) {
      const uintptr_t stop = std::min(end, at / kChunkBytes * kChunkBytes + kChunkBytes);
      f(chunks_[at / kChunkBytes - first_], at, stop);
      at = stop;
    }
  }
  template <class F>
  static void each_writer(Chunk &chunk, uintptr_t begin, uintptr_t end, F &f) {
    const uintptr_t first = begin % kChunkBytes >> chunk.shift;
    const uintptr_t last = (end - 1) % kChunkBytes >> chunk.shift;
    for (uintptr_t i = first; i <= last; ++i)
      f(chunk.writers[i]);
  }

  std::vector<Chunk> chunks_; // chunks at addresses that are multiples of kChunkBytes
  uintptr_t first_ = 0;       // number of chunks_[0]
};

// Who has read each word of one buffer since it was written last: a write must be ordered behind
// them. It is kept for memory that several devices share.
class Readers {
public:
  void add(const void *address, size_t bytes, const Writer &reader);
  // Calls f(reader) for every reader of the range, and forgets them.
  template <class F>
  void take(const void *address, size_t bytes, F f) {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    for (uintptr_t word = begin / kWord; word <= (begin + bytes - 1) / kWord; ++word)
      if (const auto found = words_.find(word); found != words_.end()) {
        for (const Writer &reader : found->second)
          f(reader);
        words_.erase(found);
      }
  }

private:
  static constexpr uintptr_t kWord = 4;
  std::unordered_map<uintptr_t, std::vector<Writer>> words_;
};

} // namespace assay::simt
