// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/last_writers.h"

#include <algorithm>
#include <utility>

namespace assay::simt {

void LastWriters::cover(const void *data, size_t bytes) {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  first_ = begin / kChunkBytes;
  chunks_.resize((begin + bytes - 1) / kChunkBytes - first_ + 1);
}

void LastWriters::refine(Chunk &chunk, uint32_t shift) {
  const size_t count = kChunkBytes >> shift;
  auto writers = std::make_unique<Writer[]>(count);
  if (chunk.writers)
    for (size_t i = 0; i < count; ++i)
      writers[i] = chunk.writers[i >> (chunk.shift - shift)];
  chunk.writers = std::move(writers);
  chunk.shift = shift;
}

void Readers::add(const void *address, size_t bytes, const Writer &reader) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t word = begin / kWord; word <= (begin + bytes - 1) / kWord; ++word) {
    std::vector<Writer> &readers = words_[word];
    const auto same = std::find_if(readers.begin(), readers.end(), [&](const Writer &r) {
      return r.launch == reader.launch && r.block == reader.block && r.thread == reader.thread;
    });
    if (same == readers.end())
      readers.push_back(reader);
    else
      *same = reader; // its later read is ordered behind this one
  }
}

} // namespace assay::simt
