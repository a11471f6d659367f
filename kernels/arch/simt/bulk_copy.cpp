// SPDX-License-Identifier: Apache-2.0
// Bulk copies as pieces of at most a row of a box: from where in global memory, to where in shared
// memory.
#include "kernels/arch/bulk_copy.cuh"

#include <algorithm>
#include <string>
#include <vector>

namespace assay::n_simt::arch::detail {
namespace {

using simt::BulkPiece;

constexpr uint32_t kRowBytes = 128, kChunkBytes = 16;

SimtTensorMap opened(const TensorMap &map, int rank, simt::Site site) {
  SimtTensorMap made;
  std::memcpy(&made, map.words, sizeof made);
  if (made.magic != SimtTensorMap::kMagic)
    simt::report(simt::HazardKind::kUnmodelled, "a tensor map that make_tensor_map has not made",
                 site);
  if (made.rank != rank)
    simt::report(simt::HazardKind::kUnmodelled,
                 "a copy of rank " + std::to_string(rank) + " by a tensor map of rank " +
                     std::to_string(made.rank),
                 site);
  return made;
}

uint32_t bytes_of(const SimtTensorMap &map) {
  uint32_t bytes = map.element_bytes;
  for (const uint16_t extent : map.box)
    bytes *= extent;
  return bytes;
}

/// Adds [begin, end) of a row whose first `row` bytes lie at `from`: bytes before and behind those
/// are zeros.
void add_clipped(std::vector<BulkPiece> &pieces, uint32_t offset, const std::byte *from,
                 int64_t row, int64_t begin, int64_t end) {
  const auto add = [&](int64_t to, const std::byte *source) {
    if (begin < to)
      pieces.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(to - begin), source});
    offset += static_cast<uint32_t>(std::max<int64_t>(0, to - begin));
    begin = std::max(begin, to);
  };
  add(std::min<int64_t>(end, 0), nullptr);
  add(std::min(end, row), from + begin);
  add(end, nullptr);
}

/// Where a chunk of a swizzled row is.
uint32_t swizzled(uint32_t offset) { return offset ^ (offset / kRowBytes % 8 * kChunkBytes); }

void add_row(std::vector<BulkPiece> &pieces, const SimtTensorMap &map, uint32_t offset,
             const std::byte *from, bool inside, int64_t first) {
  const int64_t row = inside ? static_cast<int64_t>(map.size[0] * map.element_bytes) : 0;
  const int64_t begin = first * map.element_bytes;
  const int64_t bytes = int64_t{map.box[0]} * map.element_bytes;
  const int64_t step = map.swizzled ? kChunkBytes : bytes;
  for (int64_t at = 0; at < bytes; at += step) {
    const uint32_t to = offset + static_cast<uint32_t>(at);
    add_clipped(pieces, map.swizzled ? swizzled(to) : to, from, row, begin + at, begin + at + step);
  }
}

/// Row after row of the box, dimension 1 fastest.
void add_box(std::vector<BulkPiece> &pieces, const SimtTensorMap &map, const int32_t *at,
             int rank) {
  const uint32_t row_bytes = uint32_t{map.box[0]} * map.element_bytes;
  uint32_t index[kMaxTensorRank] = {};
  for (uint32_t offset = 0; offset < bytes_of(map); offset += row_bytes) {
    const std::byte *from = map.data;
    bool inside = true;
    for (int d = 1; d < rank; ++d) {
      const int64_t coordinate = int64_t{at[d]} + index[d];
      inside = inside && coordinate >= 0 && static_cast<uint64_t>(coordinate) < map.size[d];
      if (inside) from += static_cast<uint64_t>(coordinate) * map.stride[d - 1];
    }
    add_row(pieces, map, offset, from, inside, at[0]);
    for (int d = 1; d < rank && ++index[d] == map.box[d]; ++d)
      index[d] = 0;
  }
}

} // namespace

void bulk_copy(void *dst, const void *src, uint32_t bytes, Mbarrier *b, simt::Site site) {
  if (bytes == 0 || bytes % kChunkBytes != 0 || bytes >= 1u << 20)
    simt::report(simt::HazardKind::kMisaligned,
                 "a bulk copy of " + std::to_string(bytes) +
                     " bytes, not a multiple of 16 from 16 to 2^20 - 16",
                 site);
  if (reinterpret_cast<uintptr_t>(src) % kChunkBytes != 0)
    simt::report(simt::HazardKind::kMisaligned, "the source is not at a multiple of 16 bytes",
                 site);
  simt::bulk_copy(
      dst, bytes, kChunkBytes, b,
      [&](std::vector<BulkPiece> &pieces) {
        const auto *from = static_cast<const std::byte *>(src);
        for (uint32_t offset = 0; offset < bytes; offset += kRowBytes)
          pieces.push_back({offset, std::min(kRowBytes, bytes - offset), from + offset});
      },
      site);
}

void tensor_copy(void *dst, const TensorMap &map, const int32_t *at, int rank, Mbarrier *b,
                 simt::Site site, uint32_t blocks) {
  const SimtTensorMap made = opened(map, rank, site);
  if (const int64_t begin = int64_t{at[0]} * made.element_bytes; begin % kChunkBytes != 0)
    simt::report(simt::HazardKind::kMisaligned,
                 "a box that begins at byte " + std::to_string(begin) +
                     " of its row, not at a multiple of 16",
                 site);
  simt::bulk_copy(
      dst, bytes_of(made), made.swizzled ? 1024 : 128, b,
      [&](std::vector<BulkPiece> &pieces) { add_box(pieces, made, at, rank); }, site, blocks);
}

} // namespace assay::n_simt::arch::detail
