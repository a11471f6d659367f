// SPDX-License-Identifier: Apache-2.0
// Softcap and ALiBi, between the scores of a warpgroup of Sm90Core and their softmax.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/score_features.cuh"

namespace assay::ASSAY_TARGET {

/// What a warpgroup needs for its 64 query rows. It lies in shared memory, as there are no
/// registers for it.
class Sm90Transform {
public:
  static constexpr int kRows = 64;

  /// Loads slopes and positions of rows first_row .. first_row + 63 of `work`, the first of which
  /// exists. The threads of the group must pass a barrier before apply(). A Work has
  ///   owner(params, row)         the request, token and head of a row
  ///   position(params, owner)    the key of its query token
  ///   features(params)           its FeatureParams
  template <class Params, class Work>
  ASSAY_DEVICE void load(const Params &params, const Work &work, int first_row) {
    const int thread = group_thread();
    if (thread >= kRows) return;
    const bool exists = first_row + thread < work.num_rows;
    const auto owner = work.owner(params, exists ? first_row + thread : first_row);
    const float *slopes = work.features(params).alibi_slopes;
    float slope = 0.0f;
    if (slopes != nullptr) slope = kLog2E * arch::global_load_readonly(slopes + owner.head);
    arch::shared_store(slope_ + thread, slope);
    arch::shared_store(position_ + thread, work.position(params, owner));
  }

  /// Makes base-2 logits of the scores of a tile of keys, which begins at `base`. The scores are in
  /// the registers in which wgmma leaves them. `scale` has the scales of rows g and g + 8 of the 16
  /// of the warp, which are the rows of this thread.
  template <int kWords, class Scale>
  ASSAY_DEVICE void apply(float (&scores)[kWords], const Scale &scale,
                          const FeatureParams &features, int base) const {
    if (features.softcap_log2 > 0.0f) {
      ASSAY_UNROLL
      for (int i = 0; i < kWords; ++i)
        scores[i] = softcap(scores[i] * scale.of(i / 2 % 2), features);
    } else {
      ASSAY_UNROLL
      for (int i = 0; i < kWords; ++i)
        scores[i] *= scale.of(i / 2 % 2);
    }
    if (features.alibi_slopes == nullptr) return;
    const int row = group_thread() / 32 * 16 + static_cast<int>(arch::lane_id()) / 4;
    const float slope[2] = {arch::shared_load(slope_ + row), arch::shared_load(slope_ + row + 8)};
    const int first = base + 2 * (static_cast<int>(arch::lane_id()) % 4);
    const int distance[2] = {first - arch::shared_load(position_ + row),
                             first - arch::shared_load(position_ + row + 8)};
    ASSAY_UNROLL
    for (int i = 0; i < kWords; ++i) {
      const int r = i / 2 % 2;
      scores[i] += slope[r] * static_cast<float>(distance[r] + 8 * (i / 4) + i % 2);
    }
  }

private:
  static ASSAY_DEVICE int group_thread() { return static_cast<int>(arch::thread_idx()) % 128; }

  float slope_[kRows];      // in base 2, for a distance of one key
  int32_t position_[kRows]; // position of the row's query token
};

/// The scale of scores that are logits already.
struct NoScale {
  template <class... Of>
  ASSAY_DEVICE explicit NoScale(const Of &...) {}
  ASSAY_DEVICE float of(int) const { return 1.0f; }
};

} // namespace assay::ASSAY_TARGET
