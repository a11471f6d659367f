// SPDX-License-Identifier: Apache-2.0
// The tensor-core tile of decode attention: kTokens keys against 8 * kRowTiles query rows, one
// warp.
#pragma once

#include "kernels/arch/convert.cuh"
#include "kernels/arch/mma.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/attention_state.cuh"
#include "kernels/common/kv_tile.cuh"

namespace assay::ASSAY_TARGET {

/// Operands are swapped, S^T = K Q^T and O^T = V^T P^T, so that keys (then head_dim) fill the
/// 16-row side of mma.m16n8k16 and the few query rows of a decode step (the heads of one GQA group)
/// sit on its 8-wide side: with rows on the 16-side half of every MMA would be padding.
///
/// Register layout (mma fragments): a thread holds query rows 8 n + 2 (lane % 4) + {0, 1} for row
/// tile n; of each it holds scores of tokens 16 t + lane / 4 + {0, 8} and output components
/// 16 t + lane / 4 + {0, 8}. Lanes that differ in lane / 4 hold other tokens of the same rows, so
/// row maxima need three shuffles; row sums stay per lane until reduce_sums().
template <class E, int kHeadDim, int kTokens, int kRowTiles>
class AttentionTile {
public:
  static constexpr int kDimTiles = kHeadDim / 16;
  static constexpr int kTokenTiles = kTokens / 16;
  static constexpr int kRows = 8 * kRowTiles;
  using Number = typename arch::Arithmetic<E>::Number;
  using State = AttentionState<Number, 2 * kDimTiles>;
  using Layout = KvLayout<kHeadDim>;

  /// `row_pointer(r)` returns query row r of this warp, or null for a padding row (read as zero).
  template <class RowPointer>
  ASSAY_DEVICE void load_queries(RowPointer row_pointer) {
    const int lane = arch::lane_id();
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n) {
      const E *row = row_pointer(8 * n + lane / 4);
      ASSAY_UNROLL
      for (int k = 0; k < kDimTiles; ++k) {
        ASSAY_UNROLL
        for (int h = 0; h < 2; ++h) {
          const int dim = 16 * k + 8 * h + 2 * (lane % 4);
          q_[n][k][h] = row == nullptr
                            ? 0u
                            : arch::global_load(reinterpret_cast<const uint32_t *>(row + dim));
        }
      }
      rows_[n][0] = State::identity();
      rows_[n][1] = State::identity();
    }
  }

  /// Scores of a K tile: fp32 q . k, not yet scaled.
  ASSAY_DEVICE void compute_scores(const arch::Vec4 *k_tile) {
    const int lane = arch::lane_id();
    ASSAY_UNROLL
    for (int t = 0; t < kTokenTiles; ++t) {
      ASSAY_UNROLL
      for (int n = 0; n < kRowTiles; ++n)
        for (int i = 0; i < 4; ++i)
          scores_[t][n][i] = 0.0f;
      // index(token, 2 k + h) == index(token, h) ^ 2 k: the XOR of the swizzle commutes.
      const int first = Layout::index(16 * t + (lane & 15), lane >> 4);
      ASSAY_UNROLL
      for (int k = 0; k < kDimTiles; ++k) {
        uint32_t a[4];
        arch::ldmatrix_x4(a, k_tile + (first ^ (2 * k)));
        ASSAY_UNROLL
        for (int n = 0; n < kRowTiles; ++n)
          arch::mma_m16n8k16<E>(scores_[t][n], a, q_[n][k]);
      }
    }
  }

  /// Tokens at or past `live` (counted in this tile) never take part.
  ASSAY_DEVICE void mask_tail(int live) {
    const int first = arch::lane_id() / 4;
    ASSAY_UNROLL
    for (int t = 0; t < kTokenTiles; ++t)
      ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      ASSAY_UNROLL
    for (int i = 0; i < 4; ++i)
      if (16 * t + first + 8 * (i / 2) >= live) scores_[t][n][i] = arch::neg_infinity();
  }

  /// Online softmax: raises the running maxima, turns scores into weights P = 2^(scale (s - m)),
  /// adds the unrounded weights to the row sums and keeps P rounded to E as the next MMA's operand.
  ASSAY_DEVICE void update_softmax(Number scale) {
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n) {
      const Number m_new[2] = {row_maximum(n, 0, rows_[n][0].m), row_maximum(n, 1, rows_[n][1].m)};
      // Rescaling by 2^0 is exact, so leaving it out changes no bit; the maximum of a long row soon
      // stops growing.
      if (arch::any(m_new[0] > rows_[n][0].m || m_new[1] > rows_[n][1].m)) {
        rows_[n][0].rescale_to(m_new[0], scale);
        rows_[n][1].rescale_to(m_new[1], scale);
      }
      // A tile whose keys are all masked leaves m = -inf; its weights must be 0, not NaN.
      const Number shift[2] = {
          arch::is_neg_infinity(m_new[0]) ? Number(0.0f) : Number(-(scale * m_new[0])),
          arch::is_neg_infinity(m_new[1]) ? Number(0.0f) : Number(-(scale * m_new[1]))};
      ASSAY_UNROLL
      for (int t = 0; t < kTokenTiles; ++t) {
        Number p[4];
        ASSAY_UNROLL
        for (int i = 0; i < 4; ++i) {
          p[i] = arch::exp2_approx(arch::fma_rn(scores_[t][n][i], scale, shift[i % 2]));
          rows_[n][i % 2].d += p[i];
        }
        // The accumulator layout holds P^T with tokens on rows; the B operand wants them on
        // columns.
        p_[t][n][0] = arch::movmatrix_trans(arch::pack2<E>(p[0], p[1]));
        p_[t][n][1] = arch::movmatrix_trans(arch::pack2<E>(p[2], p[3]));
      }
    }
  }

  /// O^T += V^T P^T.
  ASSAY_DEVICE void accumulate_values(const arch::Vec4 *v_tile) {
    const int lane = arch::lane_id();
    ASSAY_UNROLL
    for (int t = 0; t < kTokenTiles; ++t) {
      const int first = Layout::index(16 * t + (lane & 7) + 8 * (lane >> 4), (lane >> 3) & 1);
      ASSAY_UNROLL
      for (int c = 0; c < kDimTiles; ++c) {
        uint32_t a[4];
        arch::ldmatrix_x4_trans(a, v_tile + (first ^ (2 * c)));
        ASSAY_UNROLL
        for (int n = 0; n < kRowTiles; ++n) {
          State &r0 = rows_[n][0], &r1 = rows_[n][1];
          Number acc[4] = {r0.o[2 * c], r1.o[2 * c], r0.o[2 * c + 1], r1.o[2 * c + 1]};
          arch::mma_m16n8k16<E>(acc, a, p_[t][n]);
          r0.o[2 * c] = acc[0];
          r1.o[2 * c] = acc[1];
          r0.o[2 * c + 1] = acc[2];
          r1.o[2 * c + 1] = acc[3];
        }
      }
    }
  }

  /// Completes the row sums across the lanes that hold other tokens. Call once, after the last
  /// tile.
  ASSAY_DEVICE void reduce_sums() {
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      ASSAY_UNROLL
    for (int j = 0; j < 2; ++j)
      ASSAY_UNROLL
    for (int mask = 4; mask <= 16; mask *= 2)
      rows_[n][j].d += arch::shfl_xor(rows_[n][j].d, mask);
  }

  /// This thread's slice of row 8 n + 2 (lane % 4) + j.
  ASSAY_DEVICE const State &row(int n, int j) const { return rows_[n][j]; }
  static ASSAY_DEVICE int row_index(int n, int j) { return 8 * n + 2 * (arch::lane_id() % 4) + j; }
  /// head_dim component of State::o[i].
  static ASSAY_DEVICE int component(int i) { return 8 * i + arch::lane_id() / 4; }

private:
  ASSAY_DEVICE Number row_maximum(int n, int j, Number m) const {
    ASSAY_UNROLL
    for (int t = 0; t < kTokenTiles; ++t)
      m = arch::max_num(m, arch::max_num(scores_[t][n][j], scores_[t][n][j + 2]));
    ASSAY_UNROLL
    for (int mask = 4; mask <= 16; mask *= 2)
      m = arch::max_num(m, arch::shfl_xor(m, mask));
    return m;
  }

  uint32_t q_[kRowTiles][kDimTiles][2];
  Number scores_[kTokenTiles][kRowTiles][4];
  uint32_t p_[kTokenTiles][kRowTiles][2];
  State rows_[kRowTiles][2];
};

} // namespace assay::ASSAY_TARGET
