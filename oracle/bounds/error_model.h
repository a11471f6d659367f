// SPDX-License-Identifier: Apache-2.0
// The declared arithmetic of a kernel as the constants of the error bounds (oracle/BOUNDS.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/plugin.h"
#include "oracle/exact/dtype.h"
#include "oracle/exact/tile_order.h"

namespace assay::oracle {

inline constexpr double kU = 0x1p-24; ///< fp32 unit roundoff
inline constexpr double kLn2 = 0.693147180559945309417;
inline constexpr double kLog2E = 1.44269504088896340736;
inline constexpr double kFloor = 0x1p-126; ///< smallest normal fp32: flush threshold, per operation
inline constexpr double kFp32Limit =
    0x1p126; ///< beyond this the fp32 range is not certain: no claim
/// Relative error of the kernel's scale: one rounding of sm_scale * log2(e), plus that of the fp32
/// constant log2(e) itself (0.224 u), so that either spelling is covered.
inline constexpr double kScaleError = 1.25 * kU;
/// Everything that the budgets drop (products of bounds, their own evaluation in double).
inline constexpr double kSlack = 1.0 + 0x1p-20;

struct ErrorModel {
  int block;              ///< b, 0: scalar FMA chain
  double alignment;       ///< (b + 1) 2^-F; 0 for FMA chains
  double unit;            ///< unit roundoff of the accumulators
  double kappa;           ///< relative error committed by one block
  double dot;             ///< |score error| <= dot * sum |q_i k_i| + dot_floor
  double dot_floor;       ///< underflow in the accumulator
  const Format *p_format; ///< null: P stays fp32
  bool replays_p;         ///< P is rounded, to nearest even, so that a replay knows it
  double p_unit;          ///< relative error of rounding P, 0 when it stays fp32
  double p_floor;         ///< absolute error of a subnormal P, 0 when there is none
  double p_normal;        ///< smallest normal P
  double p_limit;         ///< from here on a rounded P is infinite
  int p_scale_log2;       ///< P is rounded as P 2^this; p_floor to p_limit are in units of P
  double operand_normal;  ///< smallest normal V
  double sum_unit;        ///< relative error of an addition to a row sum
  double sum_floor;       ///< absolute error of a subnormal row sum, 0 when there is none
  bool sums_rounded_p;    ///< weights enter a row sum as they meet V
  double entry_unit;      ///< relative error of a weight that enters a row sum
  double entry_floor;     ///< absolute error of a subnormal one
  double sum_limit;       ///< from here on a row sum may be infinite
  double exp2, log2, rcp;
  double conversion;              ///< relative error of exponents and logarithms of another base
  double tanh;                    ///< absolute error of the softcap
  double score_unit, score_floor; ///< error of rounding a score: relative, subnormal; or 0
  double score_limit;             ///< from here on a score may be infinite
  double partial_unit, partial_floor; ///< error of storing O of a partial: relative, of a subnormal
  double partial_limit;               ///< from here on a stored O may be infinite
  double q_error;                     ///< error of an element of Q, per largest |q|
  bool scales_query;                  ///< Q may meet K multiplied by what scales its scores
  double q_unit, q_floor;             ///< error of rounding it then: relative, subnormal; or 0
  double q_limit, q_normal;           ///< from here on it may be infinite; smallest normal one
  double product_unit;                ///< relative error of rounding a product of Q and K, or 0
  double product_floor;               ///< of all products of a score, of subnormal ones
  double qk_limit;                    ///< from here on a partial sum of a score may be infinite
  int sum_depth;
  int tile;   ///< keys between two updates of the running maximum
  int states; ///< merged in a block
};

/** `dtype`: what the operands of both products are in. Throws on a declaration out of its ranges.
 */
ErrorModel make_error_model(const assay_arithmetic &arithmetic, assay_dtype dtype, int head_dim);

/** Whether scores are sums of whole products as a block-FMA or a chain of fp32 computes them. */
bool plain_scores(const assay_arithmetic &arithmetic);

/** O of a partial is stored rounded to `format`; null: as it was computed. */
void store_partials(ErrorModel &model, const Format *format);

/** How the keys of one row are cut up; exact with a tile order, upper limits without. */
struct RowShape {
  int64_t tiles;     ///< the most of one state
  int64_t pv_blocks; ///< block-FMA steps of one state's accumulator, at most
  int states;        ///< per split
  int splits;
  int stages;   ///< merges through (O, LSE) partials that follow
  int64_t keys; ///< the most of one state
  int stored;   ///< stages before which O of a partial is stored
};

/** `stages`: with the merge of a sink, which is a split of its own. `span`: keys from the first to the
    last, hidden ones counted. */
RowShape shape_without_order(const ErrorModel &model, size_t keys, size_t span, int max_splits,
                             int stages);
RowShape shape_of(const ErrorModel &model, const TileOrder &order, int stages);

/** Block-FMA steps of P.V for so many keys, and for one tile (masked keys may shift its steps). */
int64_t pv_blocks(const ErrorModel &model, int keys);
int64_t pv_blocks(const ErrorModel &model, const KeyTile &tile);

} // namespace assay::oracle
