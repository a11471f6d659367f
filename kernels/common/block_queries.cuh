// SPDX-License-Identifier: Apache-2.0
// The query rows of an item in shared memory, for all warps of a block.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/math.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/decode_types.cuh"

namespace assay::ASSAY_TARGET {

/// Rows as AttentionTile::read_queries() loads them. One vector of padding a row puts the eight
/// rows that ldmatrix reads at once into different bank groups.
template <class Types, int kHeadDim, int kRows>
struct QueryStorage {
  static constexpr int kRowVectors = kHeadDim / 8; // vectors of 16 bytes
  arch::Vec4 rows[kRows][kRowVectors + 1];
  float unscale[kRows]; // with Types::kScaledQuery: what undoes the scale of a row in its scores
};

/// Loads each query vector once a block, and scales it before it is stored. In an early start the
/// keys are there long before the queries are. To find the queries takes 40 instructions: locate()
/// runs them before the wait.
template <class Types, int kHeadDim, int kRows>
class BlockQueries {
public:
  using Storage = QueryStorage<Types, kHeadDim, kRows>;
  static constexpr int kRowVectors = Storage::kRowVectors;
  static constexpr int kVectors = kRows * kRowVectors; // at most one a thread
  static_assert(kVectors % arch::kWarpSize == 0 && kRowVectors <= arch::kWarpSize);

  /// Finds what this thread loads. `row_pointer(r)` returns query row r of the item, or null for a
  /// padding row, which counts as zero.
  template <class RowPointer>
  ASSAY_DEVICE void locate(RowPointer row_pointer) {
    const int thread = static_cast<int>(arch::thread_idx());
    const auto *row = thread < kVectors ? row_pointer(thread / kRowVectors) : nullptr;
    exists_ = row != nullptr;
    if (exists_)
      source_ = arch::kept_global(reinterpret_cast<const arch::Vec4 *>(row) + thread % kRowVectors);
  }

  /// Starts this thread's load.
  ASSAY_DEVICE void load() {
    vector_ = exists_ ? arch::global_load(source_) : arch::Vec4{0, 0, 0, 0};
  }

  /// Stores what was loaded. A block barrier must follow before any warp reads it.
  ASSAY_DEVICE void store(Storage &storage) {
    const int thread = static_cast<int>(arch::thread_idx());
    if (thread >= kVectors) return; // whole warps
    const int row = thread / kRowVectors, vector = thread % kRowVectors;
    if constexpr (Types::kScaledQuery) scale(storage, row, vector);
    if constexpr (Types::kFp8) {
      // In sixteen dims, 4 i and 4 i + 1 go to the first eight elements, 4 i + 2 and 4 i + 3 to the
      // others (AttentionTile, fp8).
      arch::Vec4 *const pair = &storage.rows[row][vector & ~1];
      const int half = vector & 1;
      arch::shared_store(reinterpret_cast<arch::Vec2 *>(pair) + half,
                         arch::Vec2{vector_.x, vector_.z});
      arch::shared_store(reinterpret_cast<arch::Vec2 *>(pair + 1) + half,
                         arch::Vec2{vector_.y, vector_.w});
    } else {
      arch::shared_store(&storage.rows[row][vector], vector_);
    }
  }

private:
  using Query = typename Types::Query;
  using Mma = typename Types::Mma;

  /// Scales the row by a power of two and rounds it to fp16 (decode_types.cuh).
  ASSAY_DEVICE void scale(Storage &storage, int row, int vector) {
    float x[8];
    arch::unpack2<Query>(vector_.x, x[0], x[1]);
    arch::unpack2<Query>(vector_.y, x[2], x[3]);
    arch::unpack2<Query>(vector_.z, x[4], x[5]);
    arch::unpack2<Query>(vector_.w, x[6], x[7]);
    float largest = 0.0f;
    ASSAY_UNROLL
    for (int i = 0; i < 8; ++i)
      largest = arch::max_num(largest, x[i] < 0.0f ? -x[i] : x[i]);
    ASSAY_UNROLL
    for (int mask = 1; mask < kRowVectors; mask *= 2)
      largest = arch::max_num(largest, arch::shfl_xor(largest, mask));
    const QueryScale s = query_scale(largest);
    ASSAY_UNROLL
    for (int i = 0; i < 8; ++i)
      x[i] *= s.scale;
    vector_ = {arch::pack2<Mma>(x[0], x[1]), arch::pack2<Mma>(x[2], x[3]),
               arch::pack2<Mma>(x[4], x[5]), arch::pack2<Mma>(x[6], x[7])};
    if (vector == 0) arch::shared_store(&storage.unscale[row], s.inverse);
  }

  bool exists_ = false;
  const arch::Vec4 *source_ = nullptr;
  arch::Vec4 vector_ = {};
};

} // namespace assay::ASSAY_TARGET
