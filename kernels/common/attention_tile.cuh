// SPDX-License-Identifier: Apache-2.0
// The tensor-core tile of decode attention: one warp attends kTokens keys with 8 * kRowTiles query
// rows.
#pragma once

#include "kernels/arch/mma.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/attention_state.cuh"
#include "kernels/common/block_queries.cuh"
#include "kernels/common/kv_tile.cuh"

namespace assay::ASSAY_TARGET {

/// Operands are swapped: S^T = K Q^T and O^T = V^T P^T. Keys, then head_dim, fill the 16-row side
/// of mma.m16n8k16, and the few query rows of a decode step (the heads of one GQA group) sit on its
/// 8-wide side. With query rows on the 16-row side half of every MMA would be padding.
///
/// Register layout (mma fragments): of row tile n a thread holds the query rows
///   row_index(n, j) = 8 n + 2 (lane % 4) + j for j in {0, 1}, and of each of these rows
///   the scores of tokens 16 t + lane / 4 + {0, 8}
///   the output components component(i)
/// Lanes that differ in lane / 4 hold other tokens of the same rows. So a row maximum needs three
/// shuffles; a row sum stays per lane until reduce_sums().
///
/// fp8: ldmatrix moves pairs of bytes. A register then holds four consecutive dims of a key, or two
/// dims of two tokens of V. The order of dims within a product is free, as long as Q follows it; so
/// is the order of rows within V^T, as long as the output follows it. Hence the bytes are widened
/// and not shuffled.
///
/// kTwoParts: on request the weights P are split into a 16-bit number and what rounding to it left.
/// The columns of rows 4 to 7, which then repeat rows 0 to 3, multiply that rest with V. O has the
/// error of an fp32 P in the end (add_low_part).
template <class Types, int kHeadDim, int kTokens, int kRowTiles, bool kTwoParts = false>
class AttentionTile {
public:
  using Mma = typename Types::Mma;
  using Query = typename Types::Query;
  using Kv = typename Types::Kv;
  static constexpr int kDimTiles = kHeadDim / 16;
  static constexpr int kTokenTiles = kTokens / 16;
  static constexpr int kRows = 8 * kRowTiles;
  using Number = typename arch::Arithmetic<Mma>::Number;
  using State = AttentionState<Number, 2 * kDimTiles>;
  using Layout = KvLayout<kHeadDim * sizeof(Kv)>;

  /// Must be called before the first tile.
  ASSAY_DEVICE void use_two_parts(bool two_parts) {
    static_assert(kTwoParts && kRowTiles == 1);
    low_part_ = two_parts && arch::lane_id() % 4 >= 2;
  }

  /// Begins with no keys.
  ASSAY_DEVICE void clear() {
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      rows_[n][0] = rows_[n][1] = State::identity();
  }

  /// Clears the states and starts the loads of the queries. prepare_queries() must follow before
  /// the first scores. `row_pointer(r)` returns query row r of this warp, or null for a padding
  /// row, which counts as zero.
  template <class RowPointer>
  ASSAY_DEVICE void load_queries(RowPointer row_pointer) {
    const int lane = arch::lane_id();
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n) {
      const Query *row = row_pointer(8 * n + lane / 4);
      ASSAY_UNROLL
      for (int k = 0; k < kDimTiles; ++k) {
        ASSAY_UNROLL
        for (int h = 0; h < 2; ++h) {
          const int dim = 16 * k + (Types::kFp8 ? 4 * (lane % 4) + 2 * h : 8 * h + 2 * (lane % 4));
          q_[n][k][h] = row == nullptr
                            ? 0u
                            : arch::global_load(reinterpret_cast<const uint32_t *>(row + dim));
        }
      }
    }
    clear();
  }

  /// Waits for the queries, so that no tile does. Inside the tile loop their first use would wait
  /// on a scoreboard that the look-ups of pages share: in every tile it would wait for the look-up
  /// in front of it (ncu, bf16 b1 128k on an H200: a third of the time of a warp).
  ASSAY_DEVICE void prepare_queries() {
    if constexpr (Types::kScaledQuery) {
      ASSAY_UNROLL
      for (int n = 0; n < kRowTiles; ++n)
        scale_queries(n);
    } else {
      await_queries();
    }
  }

  /// Reads the queries of an item as BlockQueries stored them. It serves in place of load_queries()
  /// and prepare_queries().
  ASSAY_DEVICE void read_queries(const QueryStorage<Types, kHeadDim, kRows> &queries) {
    const int lane = arch::lane_id();
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n) {
      ASSAY_UNROLL
      for (int k = 0; k < kDimTiles; k += 2) {
        uint32_t q[4];
        arch::ldmatrix_x4(q, &queries.rows[8 * n + lane % 8][2 * k + lane / 8]);
        q_[n][k][0] = q[0];
        q_[n][k][1] = q[1];
        q_[n][k + 1][0] = q[2];
        q_[n][k + 1][1] = q[3];
      }
      if constexpr (Types::kScaledQuery) {
        unscale_[n][0] = arch::shared_load(&queries.unscale[row_index(n, 0)]);
        unscale_[n][1] = arch::shared_load(&queries.unscale[row_index(n, 1)]);
      }
    }
    await_queries();
  }

  /// The scores of a K tile: q . k in fp32, not yet scaled.
  ASSAY_DEVICE void compute_scores(const arch::Vec4 *k_tile) {
    const int lane = arch::lane_id();
    ASSAY_UNROLL
    for (int t = 0; t < kTokenTiles; ++t) {
      ASSAY_UNROLL
      for (int n = 0; n < kRowTiles; ++n)
        for (int i = 0; i < 4; ++i)
          scores_[t][n][i] = 0.0f;
      // index(token, 2 c + h) == index(token, h) ^ 2 c: the XOR of the swizzle commutes.
      const int first = Layout::index(16 * t + (lane & 15), lane >> 4);
      ASSAY_UNROLL
      for (int c = 0; c < Layout::kChunks / 2; ++c) {
        uint32_t a[4];
        arch::ldmatrix_x4(a, k_tile + (first ^ (2 * c)));
        if constexpr (Types::kFp8) {
          ASSAY_UNROLL
          for (int h = 0; h < 2; ++h) { // chunk 2 c + h: tokens 0 to 7 and 8 to 15
            uint32_t low[2], high[2];
            arch::widen4<Mma, Kv>(a[2 * h], low);
            arch::widen4<Mma, Kv>(a[2 * h + 1], high);
            add_scores(t, 2 * c + h, {low[0], high[0], low[1], high[1]});
          }
        } else {
          add_scores(t, c, {a[0], a[1], a[2], a[3]});
        }
      }
      if constexpr (Types::kScaledQuery) unscale_scores(t);
    }
  }

  /// Leaves out tokens at or behind `live`, counted in this tile.
  ASSAY_DEVICE void mask_tail(int live) {
    for_each_score([&](int, int, int token, Number &score) {
      if (token >= live) score = arch::neg_infinity();
    });
  }

  /// Calls f(n, j, token, score &) for every score of this thread. It is the score of a token of
  /// the tile and of row row_index(n, j).
  template <class F>
  ASSAY_DEVICE void for_each_score(F f) {
    const int first = arch::lane_id() / 4;
    ASSAY_UNROLL
    for (int t = 0; t < kTokenTiles; ++t)
      ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      ASSAY_UNROLL
    for (int i = 0; i < 4; ++i)
      f(n, i % 2, 16 * t + first + 8 * (i / 2), scores_[t][n][i]);
  }

  /// Online softmax: raises the running maxima, turns scores into weights P = 2^(scale (s - m)),
  /// adds the unrounded weights to the row sums and keeps P rounded as the next MMA's operand.
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
        // Accumulators hold P^T with a token per row. The B operand has a token per column.
        p_[t][n][0] = arch::movmatrix_trans(pack_weights(p[0], p[1]));
        p_[t][n][1] = arch::movmatrix_trans(pack_weights(p[2], p[3]));
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
      for (int c = 0; c < Layout::kChunks / 2; ++c) {
        uint32_t a[4];
        arch::ldmatrix_x4_trans(a, v_tile + (first ^ (2 * c)));
        if constexpr (Types::kFp8) {
          ASSAY_UNROLL
          for (int h = 0; h < 2; ++h) { // chunk 2 c + h: tokens 0 to 7 and 8 to 15
            uint32_t low[2], high[2];
            arch::widen4_strided<Mma, Kv>(a[h], low);
            arch::widen4_strided<Mma, Kv>(a[2 + h], high);
            add_values(t, 2 * c + h, {low[0], low[1], high[0], high[1]});
          }
        } else {
          add_values(t, c, {a[0], a[1], a[2], a[3]});
        }
      }
    }
  }

  /// Adds up the row sums of the lanes that hold other tokens of a row. Must be called once, after
  /// the last tile.
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
  /// The component of head_dim that State::o[i] holds. With kAdjacent component(2 i + 1) is
  /// component(2 i) + 1.
  static constexpr bool kAdjacent = Types::kFp8;
  static ASSAY_DEVICE int component(int i) {
    const int group = arch::lane_id() / 4;
    return Types::kFp8 ? 16 * (i / 2) + 2 * group + i % 2 : 8 * i + group;
  }

private:
  using Operand = const uint32_t (&)[4];

  ASSAY_DEVICE void await_queries() const {
    uint32_t words = 0;
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      ASSAY_UNROLL
    for (int k = 0; k < kDimTiles; ++k)
      words |= q_[n][k][0] | q_[n][k][1];
    arch::await_loaded(words);
  }

  ASSAY_DEVICE uint32_t pack_weights(Number x, Number y) const {
    const uint32_t high = arch::pack2<Mma>(x, y);
    if constexpr (kTwoParts) {
      Number x_high, y_high;
      arch::unpack2<Mma>(high, x_high, y_high);
      const uint32_t low = arch::pack2<Mma>(x - x_high, y - y_high);
      return low_part_ ? low : high;
    } else {
      return high;
    }
  }

  ASSAY_DEVICE void add_scores(int t, int dims, Operand k) {
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      arch::mma_m16n8k16<Mma>(scores_[t][n], k, q_[n][dims]);
  }

  ASSAY_DEVICE void add_values(int t, int dims, Operand v) {
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n) {
      State &r0 = rows_[n][0], &r1 = rows_[n][1];
      Number acc[4] = {r0.o[2 * dims], r1.o[2 * dims], r0.o[2 * dims + 1], r1.o[2 * dims + 1]};
      arch::mma_m16n8k16<Mma>(acc, v, p_[t][n]);
      r0.o[2 * dims] = acc[0];
      r1.o[2 * dims] = acc[1];
      r0.o[2 * dims + 1] = acc[2];
      r1.o[2 * dims + 1] = acc[3];
    }
  }

  /// Scales each row of row tile n by a power of two and rounds it to fp16 (decode_types.cuh).
  ASSAY_DEVICE void scale_queries(int n) {
    float largest = 0.0f;
    ASSAY_UNROLL
    for (int k = 0; k < kDimTiles; ++k)
      ASSAY_UNROLL
    for (int h = 0; h < 2; ++h) {
      float x, y;
      arch::unpack2<Query>(q_[n][k][h], x, y);
      largest = arch::max_num(largest, arch::max_num(x < 0.0f ? -x : x, y < 0.0f ? -y : y));
    }
    largest = arch::max_num(largest, arch::shfl_xor(largest, 1));
    largest = arch::max_num(largest, arch::shfl_xor(largest, 2));
    const QueryScale s = query_scale(largest);
    ASSAY_UNROLL
    for (int k = 0; k < kDimTiles; ++k)
      ASSAY_UNROLL
    for (int h = 0; h < 2; ++h) {
      float x, y;
      arch::unpack2<Query>(q_[n][k][h], x, y);
      q_[n][k][h] = arch::pack2<Mma>(x * s.scale, y * s.scale);
    }
    // The scores of this thread are of rows 2 (lane % 4) + j. Lane 4 r holds the scale of row r.
    ASSAY_UNROLL
    for (int j = 0; j < 2; ++j)
      unscale_[n][j] = arch::shfl_idx(s.inverse, 4 * (2 * (arch::lane_id() % 4) + j));
  }

  ASSAY_DEVICE void unscale_scores(int t) {
    ASSAY_UNROLL
    for (int n = 0; n < kRowTiles; ++n)
      ASSAY_UNROLL
    for (int i = 0; i < 4; ++i)
      scores_[t][n][i] *= unscale_[n][i % 2];
  }

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
  float unscale_[Types::kScaledQuery ? kRowTiles : 1][2];
  Number scores_[kTokenTiles][kRowTiles][4];
  uint32_t p_[kTokenTiles][kRowTiles][2];
  State rows_[kRowTiles][2];
  bool low_part_ = false; // this lane's rows are the low parts of the rows 4 below them
};

} // namespace assay::ASSAY_TARGET
