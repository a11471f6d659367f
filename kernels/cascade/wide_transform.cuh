// SPDX-License-Identifier: Apache-2.0
// Softcap and ALiBi, between the scores of a warpgroup of CascadeWide and their softmax.
#pragma once

#include "kernels/arch/load_store.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/score_features.cuh"

namespace assay::ASSAY_TARGET {

/// Of 64 query rows: what apply() has to know of each.
struct WideBias {
  static constexpr int kRows = 64;
  float slope[kRows];      // base 2, a key
  int32_t position[kRows]; // of the row's query token
  float scale[kRows];      // what makes base-2 logits of scores: registers are short

  /// Rows first_row .. first_row + 63 of `work`, by the threads of the group, which then have to
  /// meet.
  template <class Params, class Work>
  ASSAY_DEVICE void load(const Params &params, const Work &work, int first_row, int thread) {
    const int row = first_row + thread;
    if (thread >= kRows || row >= work.num_rows) return;
    const FeatureParams &features = work.features(params);
    const auto owner = work.owner(params, row);
    float x = 0.0f;
    if (features.alibi_slopes != nullptr)
      x = kLog2E * arch::global_load_readonly(features.alibi_slopes + owner.head);
    arch::shared_store(slope + thread, x);
    arch::shared_store(position + thread, work.position(params, owner));
  }

  /// Of rows g and g + 8 of the warp's 16, by all lanes: g is thread_row().
  template <class Scale>
  ASSAY_DEVICE void keep(const Scale &of) {
    if (arch::lane_id() % 4 == 0) {
      arch::shared_store(scale + thread_row(), of.of(0));
      arch::shared_store(scale + thread_row() + 8, of.of(1));
    }
    arch::warp_barrier();
  }

  /// Scores of a tile of keys from `base` on, as wgmma leaves them in registers, become base-2
  /// logits.
  template <int kWords>
  ASSAY_DEVICE void apply(float (&scores)[kWords], const FeatureParams &features, int base) const {
    const int row = thread_row();
    const float scales[2] = {arch::shared_load(scale + row), arch::shared_load(scale + row + 8)};
    const float slopes[2] = {arch::shared_load(slope + row), arch::shared_load(slope + row + 8)};
    const int first = base + 2 * (static_cast<int>(arch::lane_id()) % 4);
    const int begin[2] = {first - arch::shared_load(position + row),
                          first - arch::shared_load(position + row + 8)};
    ASSAY_UNROLL
    for (int i = 0; i < kWords; ++i) {
      const int r = i / 2 % 2;
      float x = scores[i] * scales[r];
      if (features.softcap_log2 > 0.0f) x = softcap(x, features);
      scores[i] = x + slopes[r] * static_cast<float>(begin[r] + 8 * (i / 4) + i % 2);
    }
  }

private:
  /// The first of the two rows of which this thread has scores.
  static ASSAY_DEVICE int thread_row() {
    return static_cast<int>(arch::thread_idx()) % 128 / 32 * 16 +
           static_cast<int>(arch::lane_id()) / 4;
  }
};

/// What is left of a scale when scores are logits.
struct NoScale {
  ASSAY_DEVICE float of(int) const { return 1.0f; }
};

} // namespace assay::ASSAY_TARGET
