// SPDX-License-Identifier: Apache-2.0
// Softcap and ALiBi, between the scores of a warpgroup of Sm90Core and their softmax.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/score_features.cuh"

namespace assay::ASSAY_TARGET {

/// Of 64 query rows; in shared memory, as registers are short.
class Sm90Transform {
public:
  static constexpr int kRows = 64;

  /// Slopes and positions of rows first_row .. first_row + 63 of `work`, of which the first exists.
  /// The threads of the group then have to meet.
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

  /// Scores of a tile of keys from `base` on, in the registers in which wgmma leaves them, become
  /// base-2 logits. `scale`: of rows g and g + 8 of the warp's 16, whose scores this thread has.
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

  float slope_[kRows];      // base 2, a key
  int32_t position_[kRows]; // of the row's query token
};

/// What is left of a scale when scores are logits.
struct NoScale {
  template <class... Of>
  ASSAY_DEVICE explicit NoScale(const Of &...) {}
  ASSAY_DEVICE float of(int) const { return 1.0f; }
};

} // namespace assay::ASSAY_TARGET
