// SPDX-License-Identifier: Apache-2.0
// The 64 query rows of a warpgroup of Sm90Core, in shared memory as wgmma reads them.
#pragma once

#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/math.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/blocks/sm90_ring.cuh"
#include "kernels/common/decode_types.cuh"

namespace assay::ASSAY_TARGET {

template <class Types, int kHeadDim>
class Sm90Queries {
public:
  static constexpr int kRows = 64, kThreads = 128;
  using Query = typename Types::Query;
  using Number = typename arch::Arithmetic<typename Types::Mma>::Number;
  using Matrix = Sm90Layout<kRows, kHeadDim>;

private:
  static constexpr bool kScales = Types::kScaledQuery; // rows, each by a power of two
  struct None {};
  struct Factors {
    float of_row[kRows];
  };

public:
  /// Where rows are scaled: what makes base-2 logits of the scores of each.
  using Unscale = std::conditional_t<kScales, Factors, None>;

  /// What makes base-2 logits of the scores of this thread's rows, g and g + 8 of the 16 of its
  /// warp.
  class Scale {
  public:
    template <class Params, class Work>
    ASSAY_DEVICE Scale(const Params &params, const Work &work, const Unscale &unscale) {
      if constexpr (kScales) {
        const int row = static_cast<int>(arch::thread_idx()) % kThreads / 32 * 16 +
                        static_cast<int>(arch::lane_id()) / 4;
        ASSAY_UNROLL
        for (int r = 0; r < 2; ++r)
          of_[r] = arch::shared_load(unscale.of_row + row + 8 * r);
      } else {
        of_[0] = of_[1] = work.scale_log2(params);
      }
    }
    ASSAY_DEVICE Number of(int r) const { return of_[r]; }

  private:
    Number of_[2]; // without kScales the same, and no registers
  };

  /// Loads rows first_row .. first_row + 63 of `work`. Rows behind its last one count as zeros. The
  /// threads of the group must pass a barrier before the group reads the rows.
  template <class Params, class Work>
  static ASSAY_DEVICE void load(const Params &params, const Work &work, arch::Vec4 *to,
                                [[maybe_unused]] Unscale &unscale, int first_row) {
    constexpr int kChunks = Matrix::kChunks;
    [[maybe_unused]] constexpr int kAtOnce =
        kScales && kHeadDim == 256 ? 2 : 4; // what does not spill
    const int thread = static_cast<int>(arch::thread_idx()) % kThreads;
    const int chunk = thread % kChunks;
    ASSAY_UNROLL_BY(kAtOnce)
    for (int r = thread / kChunks; r < kRows; r += kThreads / kChunks) {
      const bool exists = first_row + r < work.num_rows;
      const Query *row = work.template query<Query>(params, exists ? first_row + r : first_row);
      arch::Vec4 *target = to + Matrix::index(r, chunk);
      if constexpr (kScales)
        scale(row + chunk * 8, exists, target, unscale.of_row + r, work.scale_log2(params));
      else
        arch::cp_async_16(target, row + chunk * 8, exists);
    }
    arch::cp_async_commit();
    arch::cp_async_wait<0>();
    arch::fence_async_proxy();
  }

private:
  /// Scales eight elements of a row; neighbouring lanes have the others. `common` makes base-2
  /// logits of the scores of a row that is not scaled.
  static ASSAY_DEVICE void scale(const Query *from, bool exists, arch::Vec4 *to, float *factor,
                                 float common) {
    const arch::Vec4 packed = arch::global_load(reinterpret_cast<const arch::Vec4 *>(from));
    const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
    float x[8], largest = 0.0f;
    ASSAY_UNROLL
    for (int i = 0; i < 4; ++i) {
      arch::unpack2<Query>(exists ? words[i] : 0u, x[2 * i], x[2 * i + 1]);
      largest = arch::max_num(largest, arch::max_num(magnitude(x[2 * i]), magnitude(x[2 * i + 1])));
    }
    ASSAY_UNROLL
    for (int mask = 1; mask < Matrix::kChunks; mask *= 2)
      largest = arch::max_num(largest, arch::shfl_xor(largest, mask));
    const QueryScale s = query_scale(largest);
    uint32_t scaled[4];
    ASSAY_UNROLL
    for (int i = 0; i < 4; ++i)
      scaled[i] = arch::pack2<typename Types::Mma>(x[2 * i] * s.scale, x[2 * i + 1] * s.scale);
    arch::shared_store(to, arch::Vec4{scaled[0], scaled[1], scaled[2], scaled[3]});
    if (arch::lane_id() % Matrix::kChunks == 0) arch::shared_store(factor, common * s.inverse);
  }

  static ASSAY_DEVICE float magnitude(float x) { return x < 0.0f ? -x : x; }
};

} // namespace assay::ASSAY_TARGET
